# kwire as a command, with its machine code:
#
#   docker build --tag kwire .
#   docker run --rm --read-only --network none --volume "$PWD:/data:ro" kwire decode broker.pcap
#
# EXTRAS: what of docs/how-to/install.md goes in.
ARG PYTHON=3.13
FROM python:${PYTHON}-slim AS build
ARG EXTRAS=capture,tls,events
# Machine code is for every processor of the architecture: images run on another kind than they are built on.
ENV NUMBA_CACHE_DIR=/opt/kwire/kernels NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES=
WORKDIR /src
COPY pyproject.toml README.md LICENSE pyspark_kwire.py ./
COPY kwire ./kwire
COPY schemas ./schemas
RUN python -m venv --without-pip /opt/kwire/venv
RUN python -m pip --python /opt/kwire/venv/bin/python install --no-cache-dir --no-compile ".[${EXTRAS}]"
RUN /opt/kwire/venv/bin/kwire compile
RUN chmod -R a+rX,go-w /opt/kwire

FROM python:${PYTHON}-slim
COPY --from=build /opt/kwire /opt/kwire
ENV PATH=/opt/kwire/venv/bin:${PATH} NUMBA_CACHE_DIR=/opt/kwire/kernels NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /data
# Nobody: it owns nothing, and nothing that it runs can be written to.
USER 65534:65534
ENTRYPOINT ["kwire"]
CMD ["--help"]
