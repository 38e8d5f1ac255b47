"""Whether members were drawn at random: if not, an attack's figures say little about the model."""

from glasshouse.evaluation.drawn.blind import Blind, blind_baseline
from glasshouse.evaluation.drawn.draw import Drawn, how_drawn
from glasshouse.evaluation.drawn.joined import Joined, joined_members
from glasshouse.evaluation.drawn.known import Known

__all__ = ["Blind", "Drawn", "Joined", "Known", "blind_baseline", "how_drawn", "joined_members"]
