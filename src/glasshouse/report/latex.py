r"""The attacks as a LaTeX table, for a paper: ``\input{table.tex}`` with booktabs loaded."""

from __future__ import annotations

from glasshouse.evaluation import Interval
from glasshouse.report.figures import RateFigure
from glasshouse.report.summarise import Summary
from glasshouse.visible import visible

__all__ = ["latex_table"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def latex_table(summary: Summary) -> str:
    r"""One row per attack: AUC and TPR at each FPR, in percent, with intervals.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0]], shadow_members=[[1, 0]])
        >>> result = audit_evidence(evidence, members=[1, 0], attacks=["loss"])
        >>> print(latex_table(result.summary()).splitlines()[4])
        loss & 1.000 {\scriptsize [0.025, 1.000]} \\
    """
    rates = summary.fprs if summary.members is not None else ()
    heads = ["attack", *(["AUC"] * (summary.members is not None))]
    heads += [rf"TPR at {100 * fpr:g}\,\% FPR (\%)" for fpr in rates]
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule", " & ".join(heads) + r" \\", r"\midrule"]
    for attack in summary.attacks:
        cells = [_escaped(attack.name)]
        if attack.metrics is not None:
            cells.append(_cell(attack.metrics.auc, attack.metrics.auc_interval, 1.0, 3))
            cells += [_rate(rate) for rate in attack.metrics.rates]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _rate(rate: RateFigure) -> str:
    cell = _cell(rate.tpr, rate.tpr_interval, 100.0, 1)
    return cell if rate.reached else rf"{cell} (at {100 * rate.fpr:.1f}\,\%)"


def _cell(value: float, interval: Interval, factor: float, digits: int) -> str:
    low, high = factor * interval.low, factor * interval.high
    return rf"{factor * value:.{digits}f} {{\scriptsize [{low:.{digits}f}, {high:.{digits}f}]}}"


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in visible(text))
