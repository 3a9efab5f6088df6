"""Connected accounts, by both versions, and their links."""

from typing import Any

import stripe

from tests.demo.stripe.processor import ACCOUNT_V1, ACCOUNT_V2, ProcessorScene

RECIPIENT: Any = {"include": ["configuration.recipient"]}


def link_v2(account: str) -> Any:
    urls = {"refresh_url": "https://events.example/again", "return_url": "https://events.example/done"}
    return {"account": account, "use_case": {"type": "account_onboarding", "account_onboarding": urls}}


def link_v1(account: str) -> Any:
    urls = {"refresh_url": "https://events.example/again", "return_url": "https://events.example/done"}
    return {"account": account, "type": "account_onboarding", **urls}


def transfers_status(account: Any) -> str:
    return account.configuration.recipient.capabilities.stripe_balance.stripe_transfers.status


async def test_an_account_of_version_2_gets_transfers_once_it_is_finished(scene: ProcessorScene) -> None:
    made = await scene.do(scene.client.v2.core.accounts.create, ACCOUNT_V2)
    assert transfers_status(made) == "restricted"

    link = await scene.do(scene.client.v2.core.account_links.create, link_v2(made.id))
    page = await scene.http.get(link.url)
    assert "one click is enough" in page.text
    done = await scene.http.post(link.url)

    assert (done.status_code, done.headers["location"]) == (303, "https://events.example/done")
    seen = await scene.do(scene.client.v2.core.accounts.retrieve, made.id, RECIPIENT)
    assert transfers_status(seen) == "active"
    assert (await scene.do(scene.client.v2.core.accounts.retrieve, made.id)).configuration is None
    await scene.recorder.wait_for("v2.core.account[configuration.recipient].capability_status_updated")
    await scene.recorder.wait_for("v2.core.account_link.returned")
    assert (await scene.recorder.wait_for("account.updated")).body["account"] == made.id


async def test_an_account_of_version_1_shows_its_progress_by_flags(scene: ProcessorScene) -> None:
    made = await scene.do(scene.client.v1.accounts.create, ACCOUNT_V1)
    assert (made.details_submitted, made.charges_enabled, made.payouts_enabled) == (False, False, False)

    link = await scene.do(scene.client.v1.account_links.create, link_v1(made.id))
    await scene.http.get(link.url)
    await scene.http.post(link.url)

    seen = await scene.do(scene.client.v1.accounts.retrieve, made.id)
    assert (seen.details_submitted, seen.charges_enabled, seen.payouts_enabled) == (True, True, True)
    assert seen.capabilities is not None
    assert seen.capabilities.transfers == "active"
    event = (await scene.recorder.wait_for("account.updated")).body
    assert event["data"]["object"]["details_submitted"] is True


async def test_version_1_reads_accounts_of_version_2_but_not_the_other_way_round(scene: ProcessorScene) -> None:
    newer = await scene.account()
    older = await scene.do(scene.client.v1.accounts.create, ACCOUNT_V1)

    seen = await scene.do(scene.client.v1.accounts.retrieve, newer)
    refusal = await scene.refuses(scene.client.v2.core.accounts.retrieve, older.id)
    unknown = await scene.refuses(scene.client.v2.core.accounts.retrieve, "acct_unknown")

    assert seen.details_submitted
    assert (refusal.status, refusal.code) == (400, "v1_account_instead_of_v2_account")
    assert unknown.status == 404


async def test_an_onboarding_link_works_once(scene: ProcessorScene) -> None:
    account = await scene.account(done=False)
    link = await scene.do(scene.client.v2.core.account_links.create, link_v2(account))

    first = await scene.http.get(link.url)
    second = await scene.http.get(link.url)
    await scene.http.post(link.url)
    third = await scene.http.post(link.url)

    assert first.status_code == 200
    for answer in (second, third):
        assert (answer.status_code, answer.headers["location"]) == (303, "https://events.example/again")


async def test_an_onboarding_link_works_for_some_minutes(scene: ProcessorScene) -> None:
    account = await scene.account(done=False)
    link = await scene.do(scene.client.v1.account_links.create, link_v1(account))
    assert link.expires_at - link.created == 300

    scene.processor.clock.advance(301)
    late = await scene.http.get(link.url)

    assert (late.status_code, late.headers["location"]) == (303, "https://events.example/again")


async def test_an_account_without_access_is_forbidden(scene: ProcessorScene) -> None:
    error = await scene.fails(scene.client.v1.accounts.retrieve, "acct_unknown")

    assert isinstance(error, stripe.PermissionError)
    assert error.error is not None
    assert error.error.code == "account_invalid"


async def test_an_account_with_the_express_dashboard_needs_the_application_to_bear_losses(
    scene: ProcessorScene,
) -> None:
    defaults = {"responsibilities": {"fees_collector": "application", "losses_collector": "stripe"}}

    refusal = await scene.refuses(scene.client.v2.core.accounts.create, {**ACCOUNT_V2, "defaults": defaults})

    assert refusal.code == "account_controller_express_dash_without_application_losses_or_fees"


async def test_an_account_of_version_1_must_request_a_capability(scene: ProcessorScene) -> None:
    refusal = await scene.refuses(scene.client.v1.accounts.create, {**ACCOUNT_V1, "capabilities": {}})

    assert refusal.param == "capabilities"
