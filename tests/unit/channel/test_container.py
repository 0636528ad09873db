import pytest

from setl.select.checkpoints.folder import container_sign, lost_with_container


@pytest.mark.parametrize(
    ("files", "environment", "sign"),
    [
        ((), {}, ""),
        (("/.dockerenv",), {}, "/.dockerenv"),
        (("/run/.containerenv",), {"container": "podman"}, "/run/.containerenv"),
        ((), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "$KUBERNETES_SERVICE_HOST"),
        ((), {"KUBERNETES_SERVICE_HOST": ""}, ""),
    ],
)
def test_signs(files, environment, sign):
    assert container_sign(lambda path: path in files, environment) == sign


def test_the_warning_names_the_sign():
    assert "(/.dockerenv)" in lost_with_container("/.dockerenv")
