"""Audit a scikit-learn pipeline on breast-cancer records, and judge a claimed guarantee."""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from glasshouse import Evaluation, Population, PrivacyClaim, SklearnTrainer, audit, random_subsets

bunch = load_breast_cancer()
population = Population(bunch.data, bunch.target_names[bunch.target], ids=[f"patient-{i}" for i in range(569)])
members = random_subsets(len(population), models=1, fraction=0.5, seed=0)[0]
trainer = SklearnTrainer(estimator=make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=50)))

claim = PrivacyClaim(epsilon=0.5)
result = audit(population, members=members, trainer=trainer, shadows=8, evaluation=Evaluation(fprs=[0.05], claim=claim))
print(result.table(), end="\n\n")
print(result.summary().verdict)
print(result.privacy.sentence() if result.privacy else "")
print(result.records().sorted_by("base_rank").head(5))
