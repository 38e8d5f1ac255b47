"""The rule of the paper's eq. (6): what is asked, the answer as it is written, and the same a thousand times faster."""
