import pytest

pytest.register_assert_rewrite("tests.router.pair", "tests.router.twin")
