"""Toolkits from OpenAPI 3 documents: one tool per operation, safeguarded like every other.

    from tools.openapi import openapi_toolkit

    shop = openapi_toolkit("shop", "shop.yaml", auth={"token": secret}, tools={"createOrder": {"effect": "idempotent",
                           "idempotency_header": "Idempotency-Key"}})

or in surestep.toml, where `${NAME}` is a variable of the environment:

    [openapi.shop]
    document = "shop.yaml"
    base_url = "https://api.example.com/v1"
    auth.token = "${SHOP_TOKEN}"
    tools.createOrder = {effect = "idempotent", idempotency_header = "Idempotency-Key"}

An operation's arguments are its parameters under their own names, and `body`. GET, HEAD and OPTIONS read; everything
else is irreversible until configuration says more, DELETE of high risk. The result is the value of the answer, checked
against the schema of its status. What of a document cannot be used is named, and the rest can be. Requests go to the
base URL's host and nowhere else, guarded as for the toolkit `http`.
"""

from __future__ import annotations

from tools.openapi.config import Service
from tools.openapi.toolkit import OpenApiToolkit, openapi_toolkit

__all__ = ["OpenApiToolkit", "Service", "openapi_toolkit"]
