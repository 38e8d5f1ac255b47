"""The words and abbreviations of a report, explained to a reader who meets them for the first time."""

from __future__ import annotations

__all__ = ["GLOSSARY"]

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("Member", "A record that the model was trained on. All others are outsiders, or non-members."),
    (
        "Membership attack",
        "A way to guess, from the model's answers about a record, whether the model was trained on it.",
    ),
    (
        "Shadow model",
        "A model that the attacker trains like the audited one, on data of the same kind, to learn how answers about "
        "members differ from answers about outsiders.",
    ),
    (
        "Simulated target",
        "A shadow model in the part of the audited model. Attacks are chosen and set up on these, never on the "
        "audited model, so that the figures are not lucky.",
    ),
    (
        "Online, offline",
        "Online: some shadow models were trained on the record in question and some were not. Offline: none was, so "
        "the attacker need not know the record beforehand.",
    ),
    ("TPR, true-positive rate", "The share of members that the attack finds."),
    ("FPR, false-positive rate", "The share of outsiders that it wrongly takes for members."),
    (
        "TPR at 1 % FPR",
        "How many members are found if only one outsider in a hundred may be accused. Chance finds about as many "
        "members as it accuses outsiders.",
    ),
    (
        "ROC, AUC",
        "The ROC curve shows the TPR for every FPR. The AUC is the area under it: how often the attack gives the "
        "higher score to the member, if it is shown one member and one outsider. A coin has 0.5.",
    ),
    (
        "Interval",
        "Where the true value lies with the stated confidence, mostly 95 %, if other records had been audited.",
    ),
    (
        "p",
        "How often figures at least as high would appear by luck alone. At 0.05 or below we say that a leak is shown.",
    ),
    ("Threshold, flagged", "The score from which on a record is called a member."),
    ("FDR, false-discovery rate", "Of those on a list of called members, the share that are not members."),
    (
        "Differential privacy, ε, δ",
        "A guarantee of the training: nobody's presence changes what anybody can find out by more than a factor that "
        "grows with ε (epsilon), except with a probability of δ (delta). Smaller is safer. An audit can only show that "
        "ε is at least some value. If it shows no such value, that is not a guarantee.",
    ),
    ("DP-SGD", "Training with differential privacy: each record's influence is limited, and noise is added."),
    ("μ, Gaussian privacy", "Another measure of the same kind as ε, for training that adds Gaussian noise."),
    (
        "Posterior, calibration, ECE",
        "A posterior is a score that is meant as a probability of membership. It is calibrated if, of the records with "
        "70 %, about 70 % are members. ECE, the expected calibration error, is the mean distance from that.",
    ),
    ("Balanced accuracy", "The mean of the shares of members and of outsiders that are recognised. A coin has 50 %."),
    ("Advantage", "TPR minus FPR."),
    ("Steady", "The share of smaller sets of shadow models with which the record is still flagged."),
)
