"""What the stacked attack on graphs is made of: answers of models, features of nodes, and learning in rounds."""
