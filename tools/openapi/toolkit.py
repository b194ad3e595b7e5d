"""The toolkit of an OpenAPI document: a tool per operation that can be called, and a word about each that cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from plans.errors import ConfigurationError
from plans.failure import ToolFailure
from plans.wording import listed, nearest
from tools.callee import Callee
from tools.declaration import spec_of
from tools.http.fetch import Reach
from tools.http.hosts import HostPattern, Hosts, private_addresses
from tools.http.toolkit import MOST_BYTES
from tools.http.urls import Target, parse
from tools.json_arguments import SchemaArguments
from tools.json_result import SchemaResult
from tools.openapi.authentication import credentials_for
from tools.openapi.calling import Endpoint, perform
from tools.openapi.config import Service
from tools.openapi.document import Document, Faulty, load
from tools.openapi.naming import names_for
from tools.openapi.operations import Listed, Operation, Unusable, operations
from tools.openapi.policy import declared, faults, said_of
from tools.output import Result
from tools.outside import CONTEXT, ForeignToolkit
from tools.tool import Tool

if TYPE_CHECKING:
    from tools.http.connect import Resolver


def openapi_toolkit(
    name: str,
    document: str | Path | Mapping[str, Any],
    *,
    private_hosts: Sequence[str] = (),
    certificates: Path | None = None,
    most_bytes: int = MOST_BYTES,
    resolve: Resolver | None = None,
    **more: Any,
) -> OpenApiToolkit:
    """A tool for each operation of an OpenAPI 3 document: a file of JSON or YAML, or its value. `more` is as in
    `tools.openapi.Service`: `base_url`, `auth`, `headers`, `tools`, `every`, `only`, `without`, `prefix`; the rest as
    for `http_toolkit`. Raises ConfigurationError for a document that is none, and for what cannot be configured so."""
    try:
        service = Service.model_validate({"document": document, **more})
        private = private_addresses(private_hosts)
    except ValidationError as error:
        told = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]
        raise ConfigurationError(f"the OpenAPI toolkit {name!r} cannot be used: {'; '.join(told)}") from None
    except ValueError as error:
        raise ConfigurationError(f"the OpenAPI toolkit {name!r} cannot be used: {error}") from None
    return OpenApiToolkit(
        name, service, Hosts(private=private), certificates=certificates, most_bytes=most_bytes, resolve=resolve
    )


class OpenApiToolkit(ForeignToolkit):
    """A tool for each operation that can be called; `left_out` says of the others why not."""

    def __init__(
        self,
        name: str,
        service: Service,
        hosts: Hosts,
        *,
        certificates: Path | None = None,
        most_bytes: int = MOST_BYTES,
        resolve: Resolver | None = None,
    ) -> None:
        document = load(service.document)
        super().__init__(name, description=_title(document))
        self._service = service
        self._document = document
        self._base = _base(name, document, service, hosts)
        pattern = HostPattern(self._base.host, port=self._base.port)
        self._hosts = replace(hosts, allowed=(pattern,), setting=f"base_url of the toolkit {name!r}")
        self._reach = Reach(self._hosts, most_bytes, certificates, resolve)
        self._declare()

    def _declare(self) -> None:
        found = list(operations(self._document))
        named = list(zip(names_for(found, self._service.prefix), found, strict=True))
        self.faults += self._unknown(named)
        for name, operation in named:
            if not self._wanted(name, operation):
                continue
            if isinstance(operation, Unusable):
                self.left_out[name] = operation.why
            else:
                self._add_operation(name, operation)

    def _wanted(self, name: str, operation: Listed) -> bool:
        called = (name, operation.operation_id or name, operation.title)
        only = self._service.only
        chosen = only is None or any(fnmatchcase(each, pattern) for each in called for pattern in only)
        return chosen and not any(fnmatchcase(each, p) for each in called for p in self._service.without)

    def _add_operation(self, name: str, operation: Operation) -> None:
        """One tool: what is wrong with our configuration is a fault of ours, with the document one of the operation."""
        said = said_of(self._service, operation, name)
        header = said.get("idempotency_header")
        if filled := [*self._service.headers, *([header] if isinstance(header, str) else [])]:
            operation = operation.with_headers_filled(filled)
        ours = str(said.get("name", name))
        wrong = list(faults(said, operation))
        try:
            credentials = credentials_for(self._document, operation, self._service)
        except Faulty as fault:
            self.left_out[ours] = str(fault)
            return
        to_configure = credentials if isinstance(credentials, str) else None
        own = {"description": operation.description, "version": operation.digest}
        fields = {**own, **declared(said, operation), "name": ours}
        spec, more = spec_of({**fields, "isolation": "async", "to_configure": to_configure})
        self.faults += [f"tool {ours!r} of the OpenAPI toolkit {self.name!r} {fault}" for fault in (*wrong, *more)]
        endpoint = Endpoint(
            operation,
            self._base,
            self._reach,
            credentials if not isinstance(credentials, str) else (),
            header,
            {status: SchemaResult(schema) for status, schema in operation.answers.items() if schema is not None},
        )
        shown = Result()
        shown.schema = operation.result
        tool = Tool(spec, SchemaArguments(operation.arguments), shown, self._callee(endpoint, ours), toolkit=self.name)
        if why := _unusable(tool, endpoint):
            self.left_out[ours] = f"{operation.title}: {why}"
        elif ours in self.tools:
            self.faults.append(f"tool {ours!r} is declared twice in the OpenAPI toolkit {self.name!r}; rename one")
        else:
            self.tools[ours] = tool

    def _callee(self, endpoint: Endpoint, name: str) -> Callee:
        async def call(**named: Any) -> Any:
            return await perform(endpoint, self.tools[name].spec, named, named.pop(CONTEXT))

        return Callee(call, is_async=True, context=CONTEXT)

    def _unknown(self, named: Sequence[tuple[str, Listed]]) -> Iterator[str]:
        """What configuration names and the document does not have."""
        known = {each for name, operation in named for each in (name, operation.operation_id, operation.title) if each}
        for key in self._service.tools:
            if key not in known:
                yield f"the OpenAPI toolkit {self.name!r} has no operation {key!r}; {_meant(key, sorted(known))}"
        for key in self._service.auth:
            if key not in self._document.schemes:
                there = list(self._document.schemes)
                yield f"the OpenAPI toolkit {self.name!r} has no security scheme {key!r}; {_meant(key, there)}"


def _meant(name: str, known: Sequence[str]) -> str:
    close = nearest(name, known)
    return f"did you mean {close!r}?" if close else f"there are {listed(known)}"


def _unusable(tool: Tool, endpoint: Endpoint) -> str | None:
    if CONTEXT in tool.arguments.names:
        return f"it has an argument {CONTEXT!r}"
    if fault := tool.arguments.fault():
        return f"its arguments cannot be used: {fault}"
    for status, result in endpoint.results.items():
        if isinstance(result, SchemaResult) and (fault := result.fault()):
            return f"its answer {status} cannot be used: {fault}"
    return None


def _title(document: Document) -> str:
    about = document.root.get("info")
    title = about.get("title") if isinstance(about, Mapping) else None
    return " ".join("".join(c for c in title if c.isprintable()).split())[:200] if isinstance(title, str) else ""


def _base(name: str, document: Document, service: Service, hosts: Hosts) -> Target:
    """Where the service is. ConfigurationError where nothing says so, or where secrets would go out in the open."""
    url = service.base_url or _server(document)
    if url is None or "://" not in url:
        raise ConfigurationError(
            f"the OpenAPI toolkit {name!r} does not say where its service is; set base_url, "
            "such as https://api.example.com/v1"
        )
    try:
        base = parse(url)
    except ToolFailure as failure:
        raise ConfigurationError(f"the base_url of the OpenAPI toolkit {name!r} cannot be used: {failure}") from None
    if "?" in base.path:
        raise ConfigurationError(f"the base_url of the OpenAPI toolkit {name!r} has a query; leave it out")
    if base.scheme == "http" and (service.auth or service.headers) and base.host not in hosts.private:
        raise ConfigurationError(
            f"the OpenAPI toolkit {name!r} would send its secrets over http in the open; use https, "
            "or name the host as an internal one (http_private_hosts)"
        )
    return base


def _server(document: Document) -> str | None:
    """The first of the document's servers, with its variables at their defaults."""
    servers = document.root.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    if not isinstance(first, Mapping) or not isinstance(url := first.get("url"), str):
        return None
    variables = first.get("variables")
    for variable, about in (variables if isinstance(variables, Mapping) else {}).items():
        default = about.get("default") if isinstance(about, Mapping) else None
        url = url.replace(f"{{{variable}}}", str(default))
    return str(url)
