# The image that `make image` makes without docker, made by docker: docker build --tag protokube .
# The Python packages are those of requirements/runtime.lock, checked by their hashes.
FROM python:3.13-slim AS build
COPY requirements /source/requirements
RUN python -m venv /usr/local/lib/protokube \
    && /usr/local/lib/protokube/bin/pip install --no-deps --require-hashes --requirement /source/requirements/runtime.lock \
    && /usr/local/lib/protokube/bin/pip install --no-deps --require-hashes --requirement /source/requirements/build.lock \
        --target /build
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN PYTHONPATH=/build /usr/local/lib/protokube/bin/pip install --no-deps --no-build-isolation /source \
    && /usr/local/lib/protokube/bin/pip uninstall --yes pip

FROM python:3.13-slim
COPY --from=build /usr/local/lib/protokube /usr/local/lib/protokube
RUN ln -s /usr/local/lib/protokube/bin/protokube /usr/local/bin/protokube
ENTRYPOINT ["protokube"]
