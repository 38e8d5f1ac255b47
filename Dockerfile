# Glasshouse in a container, on the CPU.
#
#   docker build -t glasshouse .
#   docker run --rm -v "$PWD:/work" glasshouse new table         # a file to begin with, in this folder
#   docker run --rm -v "$PWD:/work" glasshouse audit audit.yaml  # the report is then in runs/audit
#
# For a GPU, leave out --index-url in the line that installs torch: PyPI's own build comes with CUDA.
# 3.12.14 on Debian 13. Named by the digest of all its builds (amd64, arm64): a tag may be moved, a digest cannot. Renewals come
# from dependabot; by hand: docker buildx imagetools inspect python:3.12-slim
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea

# gcc's OpenMP runtime: scikit-learn and the boosting libraries load it
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/glasshouse
COPY requirements ./requirements
RUN pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: -r requirements/core.lock \
    -r requirements/boosting.lock -r requirements/dp.lock -r requirements/graph.lock -r requirements/tables.lock
# by version alone: PyTorch's own index has another file under another hash for each build. What it needs is there by now.
COPY constraints.txt ./
RUN pip install --no-cache-dir --only-binary :all: -c constraints.txt --index-url https://download.pytorch.org/whl/cpu torch==2.13.0
COPY pyproject.toml README.md LICENSE ./
# makes the description of the package, when it is built
COPY docs/scripts/long_description.py ./docs/scripts/
COPY src ./src
RUN pip install --no-cache-dir --no-deps --no-build-isolation .

# audits run as a user without rights, in whose home compiled kernels are kept
RUN useradd --create-home auditor && mkdir /work && chown auditor /work
USER auditor
WORKDIR /work
ENTRYPOINT ["glasshouse"]
CMD ["--help"]
