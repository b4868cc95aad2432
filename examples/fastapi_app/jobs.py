"""The jobs, which the web application and the workers import."""

import asyncio
from dataclasses import dataclass
from typing import Final

import leaseq.jobs.aio
from leaseq.jobs import Context, DeadLetter

app = leaseq.jobs.aio.App()  # at the URL in $REDIS_URL

RATE_SECONDS: Final = 0.5


@dataclass
class Sale:
    """A line of the books."""

    country: str
    amount: int


@dataclass
class Report:
    """The sales by country, in euros."""

    sales: int
    totals: dict[str, float]


@app.job(name="reports.build", retries=2, keep="1h")
async def build(ctx: Context, sales: list[Sale]) -> Report:
    """Add up the sales of each country, and report which part is done."""
    wrong = [sale for sale in sales if sale.amount < 0]
    if wrong:
        raise DeadLetter(f"a sale has the amount {wrong[0].amount}")  # trying again would not help
    totals: dict[str, float] = {}
    countries = sorted({sale.country for sale in sales})
    for done, country in enumerate(countries, 1):
        total = sum(sale.amount for sale in sales if sale.country == country)
        totals[country] = round(total * await rate_of(country), 2)
        ctx.progress(done, len(countries))
    return Report(len(sales), totals)


async def rate_of(country: str) -> float:
    """Return how many euros the money of a country is worth: in a real program a call of a slow service."""
    await asyncio.sleep(RATE_SECONDS)
    return {"CH": 1.05, "GB": 1.15, "SE": 0.09}.get(country, 1.0)
