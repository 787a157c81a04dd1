# kernel-env: serves on port 8000; on a GPU with `--gpus all`, on the CPU without. docs/decisions/0002-image.md has the
# reasons for the base, for nvcc from wheels, and for root.
#
#   docker build -t kernel-env:latest .
#   docker run --rm --gpus all -p 127.0.0.1:8000:8000 kernel-env:latest
#
# The name is short on purpose: any registry or local image of that name will do.
FROM debian:bookworm-slim

# gcc, g++ and Python.h compile Triton's launchers and load_inline's host code at run time: they stay in the image.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ca-certificates g++ gcc libc6-dev libseccomp2 python3 python3-dev python3-venv tini \
    && rm -rf /var/lib/apt/lists/*

ARG VENV=/opt/kernel-env
# The default is the CUDA build (needs driver 580 or newer). A build for hosts without a GPU passes the CPU build's wheel
# or version.
ARG TORCH=torch
WORKDIR /usr/local/src/kernel-env

# The heavy layer first: it changes only with the pins.
COPY constraints.txt ./
RUN python3 -m venv "$VENV" \
    && "$VENV/bin/pip" install --no-cache-dir --constraint constraints.txt setuptools \
    && "$VENV/bin/pip" install --no-cache-dir --constraint constraints.txt \
        "$TORCH" triton numpy ninja "cuda-toolkit[nvcc,cccl,cudart]"

# NVIDIA's wheels share one folder that is laid out like a toolkit, less two names: lib64, where nvcc and torch look for
# libraries, and the unversioned libcudart.so, which -lcudart asks for.
RUN cuda="$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13" \
    && ln -s lib "$cuda/lib64" \
    && ln -s libcudart.so.13 "$cuda/lib/libcudart.so" \
    && ln -s "$cuda" /usr/local/cuda \
    && /usr/local/cuda/bin/nvcc --version

COPY pyproject.toml README.md LICENSE openenv.yaml ./
COPY kernel_env kernel_env
COPY server server
COPY examples examples
RUN "$VENV/bin/pip" install --no-cache-dir --no-build-isolation --constraint constraints.txt ".[server]" \
    && rm -rf build ./*.egg-info \
    && install -d -m 0755 /var/cache/kernel-env

# Away from the sources: a `python -m` started among them would import those instead of what was installed.
WORKDIR /

ENV PATH=/opt/kernel-env/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    CUDA_HOME=/usr/local/cuda \
    PYTHONUNBUFFERED=1 \
    # The NVIDIA runtime mounts the driver for these: nothing to display, nothing to encode.
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    # Refuse to start rather than run submissions without the whole sandbox.
    KERNEL_ENV_REQUIRE_ISOLATION=1 \
    KERNEL_ENV_AUDIT_DIR=/var/cache/kernel-env/audit \
    # OpenEnv's web interface would serve anyone who can reach the port, and costs start-up time.
    ENABLE_WEB_INTERFACE=false

LABEL org.opencontainers.image.title="kernel-env" \
      org.opencontainers.image.description="OpenEnv environment in which agents write GPU kernels" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.version="0.1.0" \
      kernel-env.cuda="13.0" \
      kernel-env.driver.minimum="580"

# Audit bundles. Named here so that it is writable even under --read-only.
VOLUME /var/cache/kernel-env
EXPOSE 8000
STOPSIGNAL SIGTERM

# The first start on a device calibrates it. /health answers throughout; the period covers a slow disk.
HEALTHCHECK --interval=30s --timeout=5s --start-period=90s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/gpu', timeout=4)"]

# Root, because every submission runs under a uid of its own: starting it needs SETUID, SETGID and CHOWN, ending it KILL,
# using its private scratch folder DAC_OVERRIDE. All five are in Docker's default set; the rest may be dropped.
USER root
# An init, so that processes which a submission orphaned are reaped.
ENTRYPOINT ["tini", "--"]
CMD ["kernel-env", "serve", "--host", "0.0.0.0", "--port", "8000"]
