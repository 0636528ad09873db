#!/bin/sh
# Makes the two lock files of the image again, from pyproject.toml: each package in one version, with
# the hashes of all its files. Run it with Python 3.11, as in the image, where `pip-compile` (the
# package pip-tools) is installed:
#
#   deploy/docker/lock.sh                # keeps versions that still fit
#   deploy/docker/lock.sh --upgrade      # takes the newest ones
set -eu
cd "$(dirname "$0")/../.."
export CUSTOM_COMPILE_COMMAND=deploy/docker/lock.sh
lock() {
    pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
        --no-emit-find-links --no-emit-trusted-host --no-emit-options "$@"
}
# With the clients of all targets, since nobody installs packages into an image.
lock "$@" --extra delta --extra opensearch-aws --extra otel \
    --output-file deploy/docker/requirements.txt pyproject.toml
lock "$@" --output-file deploy/docker/build-requirements.txt deploy/docker/build-requirements.in
