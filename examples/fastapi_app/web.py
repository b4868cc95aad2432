"""The web application: start a report, look at its status and progress, wait for its result, cancel it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query
from fastapi.responses import JSONResponse

from fastapi_app.jobs import Report, Sale, build
from fastapi_app.jobs import app as jobs
from leaseq.jobs import JobCancelled, JobFailed, ResultNotKept


@asynccontextmanager
async def lifespan(_web: FastAPI) -> AsyncIterator[None]:
    """Open the App when the web server starts, and close it when it stops."""
    async with jobs:
        yield


web = FastAPI(title="Sales reports", lifespan=lifespan)


@web.post("/reports", status_code=202)
async def start(sales: list[Sale]) -> dict[str, str]:
    """Enqueue a report and return its id at once."""
    job = await build.enqueue(sales)
    return {"id": job.id}


@web.get("/reports/{report_id}")
async def look(report_id: str) -> dict[str, Any]:
    """Return the status of a report, its progress while it is built, and its error."""
    info = await jobs.handle(report_id).info()
    if info.status == "unknown":
        raise HTTPException(404, "there is no such report")
    return {"status": info.status, "progress": info.progress, "error": info.error}


@web.get("/reports/{report_id}/result", response_model=Report)
async def result(report_id: str, wait: Annotated[float, Query(ge=0, le=30)] = 0) -> object:
    """Return a report. Wait up to `wait` seconds for it; without it, return 202."""
    try:
        return await jobs.handle(report_id).result(timeout=wait)
    except TimeoutError:
        return JSONResponse({"status": "not ready"}, 202)
    except JobFailed as error:
        raise HTTPException(422, error.message) from error
    except (JobCancelled, ResultNotKept) as error:
        raise HTTPException(404, str(error)) from error


@web.delete("/reports/{report_id}")
async def cancel(report_id: str) -> dict[str, bool]:
    """Cancel a report that is not ready."""
    return {"cancelled": await jobs.handle(report_id).cancel()}
