"""Whether a figure may be believed: members as stated, drawn at random, a target of the shadow models' kind."""
