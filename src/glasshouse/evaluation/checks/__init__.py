"""Whether a figure means what it says: members as stated, drawn at random, a target of the shadow models' kind."""
