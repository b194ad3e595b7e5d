"""What a column's name says about it, in English, German and Chinese."""

from __future__ import annotations

import re

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zäöüß]+|[0-9]+|[\u4e00-\u9fff]+")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_AMOUNT = _set(
    "amount total subtotal price cost costs sum revenue fee fees tax net gross paid charge value sales "
    "betrag preis summe umsatz kosten gebühr netto brutto"
)
_AMOUNT_ZH = ("金额", "价格", "单价", "总价", "总额", "费用", "应付", "实付", "税额", "销售额", "运费")
_QUANTITY = _set("quantity qty units pieces count menge anzahl stück")
_QUANTITY_ZH = ("数量", "件数")
_EITHER_SIGN = _set(
    "refund refunds refunded balance delta change discount diff difference profit margin adjustment "
    "correction credit saldo rabatt gewinn differenz"
)
_EITHER_SIGN_ZH = ("退款", "余额", "差", "折扣", "优惠", "利润", "调整")
_ID = _set("id ids uuid guid no nr number nummer key sku")
_ID_ZH = ("编号", "单号", "订单号", "序号", "流水号", "号码")
_LIST = _set(
    "status state currency country type kind channel method category priority region gender unit zustand "
    "währung land art kategorie kanal"
)
_LIST_ZH = ("状态", "币种", "货币", "国家", "类型", "类别", "渠道", "方式", "地区")
_PLANNED = _set("expected planned estimated due eta target promised scheduled geplant voraussichtlich")
_PLANNED_ZH = ("预计", "计划", "预期", "截止")
_STAGES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (_set("created ordered order placed start started begin opened bestellt erstellt"),
     ("下单", "创建", "订购", "开始", "起始")),
    (_set("confirmed approved bestätigt"), ("确认", "审核")),
    (_set("paid payment bezahlt"), ("付款", "支付")),
    (_set("packed picked verpackt"), ("配货", "打包")),
    (_set("ship shipped dispatched sent shipping shipment versandt"), ("发货", "出库", "寄出")),
    (_set("delivered received delivery arrival arrived geliefert zugestellt"),
     ("送达", "收货", "签收", "到货")),
    (_set("returned return retour"), ("退货",)),
    (_set("refunded refund erstattet"), ("退款",)),
    (_set("end ended finished closed completed ende"), ("结束", "完成", "关闭")),
)  # fmt: skip


def _words(name: str) -> set[str]:
    return {part.lower() for part in _PARTS.findall(name)}


def _says(name: str, words: frozenset[str], chinese: tuple[str, ...]) -> bool:
    return bool(_words(name) & words) or any(part in name for part in chinese)


def is_amount(name: str) -> bool:
    """Money that has one sign by nature."""
    return _says(name, _AMOUNT, _AMOUNT_ZH) and not _says(name, _EITHER_SIGN, _EITHER_SIGN_ZH) and not is_id(name)


def is_quantity(name: str) -> bool:
    """A number of things."""
    return _says(name, _QUANTITY, _QUANTITY_ZH) and not is_id(name)


def is_id(name: str) -> bool:
    """Something that names a row or a thing."""
    return _says(name, _ID, _ID_ZH)


def is_list(name: str) -> bool:
    """Something with few possible values."""
    return _says(name, _LIST, _LIST_ZH) and not is_id(name)


def stage(name: str) -> int | None:
    """Where an event stands in the life of an order or a task, or None; plans and promises are no events."""
    if _says(name, _PLANNED, _PLANNED_ZH):
        return None
    found = [place for place, (words, chinese) in enumerate(_STAGES) if _says(name, words, chinese)]
    return max(found, default=None)
