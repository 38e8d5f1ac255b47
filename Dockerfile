# Glasshouse in a container, on the CPU.
#
#   docker build -t glasshouse .
#   docker run --rm -v "$PWD:/work" glasshouse new table         # a file to begin with, in this folder
#   docker run --rm -v "$PWD:/work" glasshouse audit audit.yaml  # the report is then in runs/audit
#
# For a GPU, leave out the line that installs torch: PyPI's own build comes with CUDA.
FROM python:3.12-slim

# gcc's OpenMP runtime: scikit-learn and the boosting libraries load it
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/glasshouse
COPY constraints.txt pyproject.toml README.md LICENSE ./
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu torch==2.13.0
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt '.[boosting,dp,graph,tables]'

# audits run as a user without rights, in whose home compiled kernels are kept
RUN useradd --create-home auditor && mkdir /work && chown auditor /work
USER auditor
WORKDIR /work
ENTRYPOINT ["glasshouse"]
CMD ["--help"]
