"""The examples in docs/client.md run, one after the other, against a real service."""

import re
from pathlib import Path

from tests.service.conftest import Service
from thrifty.client import Client
from thrifty.client.clients import BaseClient

PAGE = (Path(__file__).parent.parent.parent / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_run(service: Service) -> None:
    for example in EXAMPLES:
        exec(compile(example, "docs/client.md", "exec"), {"url": service.url, "key": None, "__name__": "example"})
    assert len(EXAMPLES) == 4
    with Client(service.url) as client:
        assert sum(arm["outcomes"] for arm in client.explain("sms", "DE/vodafone")["arms"]) == 2


def test_the_page_names_every_method_and_every_option() -> None:
    methods = {name for name in vars(Client) if name[0] != "_"}
    options = set(BaseClient.__init__.__kwdefaults__ or {})
    assert {name for name in methods | options if f"`{name}`" not in PAGE} == {"close"}
