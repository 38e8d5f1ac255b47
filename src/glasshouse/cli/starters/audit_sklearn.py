"""Audit a scikit-learn model: which of its training records can be found from outside?

Run: python audit_sklearn.py. It runs as it is, on records that come with scikit-learn; put your own where it says
"yours".
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from glasshouse import Population, audit


def main() -> None:
    """Fit a target as you do, audit it, and write the report."""
    # Yours: all records, those that trained the model (members) and others like them. x may be an array or a
    # data frame, labels may be of any kind.
    bunch = load_breast_cancer()
    x, y = bunch.data, bunch.target_names[bunch.target]
    population = Population(x, y, ids=[f"patient-{number}" for number in range(len(y))])

    # Yours: who trained the model, as truth values [N]. Draw the members at random if you can: only then do the figures
    # show what the model leaks, and not how members differ from non-members.
    members = np.random.default_rng(0).permutation(len(y)) < len(y) // 2

    # Yours: the estimator, not fitted. XGBoost, LightGBM, CatBoost and skorch work in the same way.
    estimator = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=20, random_state=0))

    # Yours: the fitted model.
    model = estimator.fit(x[members], y[members])

    result = audit(
        population,
        model=model,
        members=members,
        trainer=estimator,  # every shadow model is a fresh copy, fitted to other records
        shadows=8,  # 8 are enough for a first audit; docs: "Which attack, how many shadows, how long"
        # evaluation=Evaluation(groups={"hospital": hospitals}),  # the leak of each group, one value per record
        # pool="pools/sklearn",  # keep the shadow models, so that the next audit trains only what is missing
        title="My scikit-learn model",
    )
    print(result.table())
    print(result.summary().verdict)
    print("Report:", (result.save("runs/sklearn", overwrite=True) / "report.html").resolve())


if __name__ == "__main__":  # worker processes import this file, and must not run it
    main()
