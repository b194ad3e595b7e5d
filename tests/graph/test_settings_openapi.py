"""Services with an OpenAPI document in the settings file, from the command line to the wire, and their secrets."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from graph.registries import outside
from graph.settings import Settings
from plans.errors import ConfigurationError
from tests.graph.program import Project, Run
from tests.tools.http.flaky import HOST, flaky_server, says
from tests.tools.openapi.shop import SECRET, SHOP

FILE = """
http_private_hosts = ["localhost=127.0.0.1"]
[openapi.shop]
document = "shop.json"
base_url = "http://localhost:{port}/v1"
auth.token = "${{SHOP_TOKEN}}"
without = ["removeOrder"]
tools.createOrder = {{effect = "idempotent", idempotency_header = "Idempotency-Key", timeout_s = 7}}
"""


def written(folder: Path, port: int = 1, text: str = FILE) -> None:
    """The settings and the document of a folder."""
    (folder / "surestep.toml").write_text(text.format(port=port), "utf-8")
    (folder / "shop.json").write_text(json.dumps(SHOP), "utf-8")


def stored_text(database_url: str) -> str:
    """Every row of every table of the database, as text."""
    found: list[str] = []
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for schema, table in tables:
            rows = connection.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table)))
            found += [row[0] for row in rows.fetchall()]
    return "\n".join(found)


def test_services_stand_in_the_file_with_variables_for_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret is the environment's variable, is not repeated when settings are shown,
    and is told when it is missing."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    settings = Settings.load(environment={"SHOP_TOKEN": SECRET})
    shop = settings.openapi["shop"]
    assert (shop.auth["token"].get_secret_value(), shop.document) == (SECRET, Path("shop.json"))
    assert SECRET not in repr(settings)
    assert SECRET not in repr(shop)
    with pytest.raises(ConfigurationError, match=r"openapi\.shop\.auth\.token wants SHOP_TOKEN"):
        Settings.load(environment={})


def test_every_fault_of_several_toolkits_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that are missing, hosts that are none, documents that are not there: all of them in one message."""
    text = """
    http_hosts = ["https://a.example.com", "*.com", "ok.example.com"]
    http_private_hosts = ["a", "b=999", "c=::ffff:169.254.169.254"]
    [mcp.one]
    command = "${{ONE}}"
    [openapi.two]
    document = "two.yaml"
    auth.token = "${{TWO}}"
    base_url = "https://two.example.com"
    [openapi.three]
    document = "~/three-of-nobody.yaml"
    """
    monkeypatch.chdir(tmp_path)
    written(tmp_path, text=text)
    with pytest.raises(ConfigurationError) as missing:
        Settings.load(environment={})
    assert all(
        words in str(missing.value) for words in ("mcp.one.command wants ONE", "openapi.two.auth.token wants TWO")
    )
    with pytest.raises(ConfigurationError) as wrong:
        Settings.load(environment={"ONE": "true", "TWO": SECRET})
    for words in (
        "'https://a.example.com' should",
        "'*.com' would",
        "'a' should",
        "'b=999'",
        "'c=::ffff:169.254.169.254'",
    ):
        assert words in str(wrong.value)
    hosts = {"SURESTEP_HTTP_HOSTS": "ok.example.com", "SURESTEP_HTTP_PRIVATE_HOSTS": "d=10.0.0.1"}
    with pytest.raises(ConfigurationError) as absent:
        outside(Settings.load(environment={"ONE": "true", "TWO": SECRET, **hosts}))
    for words in ("openapi.two: the OpenAPI document two.yaml", f"document {Path.home()}/three-of-nobody.yaml"):
        assert words in str(absent.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[openapi.shop]\nbase_url = "https://h.example.com"', "openapi.shop.document"),
        ('[openapi.shop]\ndocument = "d"\ntoken = "${{SHOP_TOKEN}}"', "openapi.shop.token"),
        ('[openapi.shop]\ndocument = "d"\nauth.token = "a\\n${{SHOP_TOKEN}}"', "holds what a header cannot hold"),
        ('[openapi.shop]\ndocument = "d"\nheaders.X-Key = ["${{SHOP_TOKEN}}"]', "openapi.shop.headers.X-Key"),
        ('[openapi.shop]\ndocument = "d"\ntools.a = {{timout_s = 3}}', "did you mean 'timeout_s'?"),
        ('[openapi."a b"]\ndocument = "d"', "openapi.a b"),
        ("[openapi.shop]\ndocument = 5", "openapi.shop.document in surestep.toml is a number: it should be the name"),
        ('[openapi.shop]\ndocument = ""', "openapi.shop.document in surestep.toml is text: it should be the name"),
        ('[openapi.shop]\ndocument = "d"\nheaders.Host = "${{SHOP_TOKEN}}"', "'Host' is no name of a header"),
    ],
)
def test_what_cannot_be_used_is_told_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    """The setting by its place, what should be there, and never what a variable held."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, text=text)
    with pytest.raises(ConfigurationError) as refused:
        Settings.load(environment={"SHOP_TOKEN": SECRET})
    assert words in str(refused.value)
    assert SECRET not in str(refused.value)


def test_from_the_settings_file_to_the_wire(
    project: Project, surestep: Run, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line lists the operations and runs a plan of them; the secret reaches the server and nothing else:
    neither output, nor a row of the database, nor a file."""
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    with flaky_server() as server:
        server.on("/v1/orders/A1", says('{"id": "A1", "status": "sent"}'))
        server.on("/v1/orders/A2", says(f'{{"error": "token {SECRET} is not for A2"}}', 403))
        written(project.folder, server.port)
        listed = surestep("tools", "--json")
        shown = surestep("tools", "show", "createOrder")
        steps = [{"id": f"s{n}", "tool": "getOrder", "args": {"id": f"A{n}"}} for n in (1, 2)]
        project.write("plan.json", {"goal": "look", "steps": steps})
        ran = surestep("run", "--plan", "plan.json", "--json", "--thread", "t")
        story = surestep("show", "t")
    kinds = {tool["name"]: (tool["effect"], tool["timeout_s"]) for tool in listed.json["tools"]}
    assert (kinds["createOrder"], kinds["getOrder"]) == (("idempotent", 7), ("read", 15))
    assert "removeOrder" not in kinds
    assert {step["id"]: step["status"] for step in ran.json["steps"]} == {"s1": "done", "s2": "failed"}
    assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {SECRET}"] * 2
    for ended in (listed, shown, ran, story):
        assert SECRET not in ended.out + ended.err
    assert SECRET not in stored_text(database_url)
    files = [file for file in project.folder.rglob("*") if file.is_file()]
    assert files
    assert all(SECRET.encode() not in file.read_bytes() for file in files)


def test_a_broken_document_is_told_and_a_broken_operation_left_out(project: Project, surestep: Run) -> None:
    """A file that is none ends with 2 and one sentence; an operation that cannot be called is a notice."""
    project.write("surestep.toml", '[openapi.shop]\ndocument = "shop.json"\nbase_url = "https://shop.example.com"\n')
    surestep("tools").refuses("the OpenAPI document shop.json cannot be read: No such file")
    project.write("shop.json", {"swagger": "2.0", "paths": {}})
    surestep("tools").refuses("Swagger 2.0, which is not read")
    upload = {"operationId": "upload", "requestBody": {"required": True, "content": {"multipart/form-data": {}}}}
    project.write("shop.json", {"openapi": "3.1.0", "paths": {"/a": {"post": upload}, "/b": {"get": {}}}})
    listed = surestep("tools")
    assert listed.code == 0
    assert "leaves upload out: paths./a.post.requestBody: is multipart/form-data" in listed.err
    assert "get_b" in listed.out


def test_the_tool_http_is_set_up_by_settings(project: Project, surestep: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a host is allowed it is listed as not set up, and a plan with it is told what to set."""
    assert "not set up" in surestep("tools").out
    with flaky_server() as server:
        url = server.on("/", says('{"n": 7}'))
        plan = {"goal": "look", "steps": [{"id": "s1", "tool": "http", "args": {"url": url}}], "answer": "${s1.json.n}"}
        project.write("plan.json", plan)
        surestep("run", "--plan", "plan.json").refuses("TOOL_UNAVAILABLE", "SURESTEP_HTTP_HOSTS")
        monkeypatch.setenv("SURESTEP_HTTP_HOSTS", f"{HOST}:{server.port}")
        refused = surestep("run", "--plan", "plan.json", "--json")
        assert (refused.code, len(server.requests)) == (1, 0)
        monkeypatch.setenv("SURESTEP_HTTP_PRIVATE_HOSTS", f"{HOST}=127.0.0.1")
        assert surestep("run", "--plan", "plan.json", "--json").json["answer"] == "7"
