"""Payments stored in a file are there after a restart."""

from pathlib import Path

from tests.demo.stripe.processor import ProcessorScene, run_processor


async def test_sessions_and_payments_of_the_demo_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "payments.sqlite"
    async with run_processor(path) as scene:
        account = await scene.account()
        create, params = scene.client.v1.checkout.sessions.create, scene.params(account)
        session = await scene.do(create, params, {"idempotency_key": "checkout:7"})
        scene.processor.webhooks.hold = True
        scene.processor.pay(session.id)

    async with run_processor(path) as scene:
        again = await create_session(scene, params)
        event = (await scene.recorder.wait_for("checkout.session.completed")).body

        assert again == session.id
        assert event["data"]["object"]["id"] == session.id
        assert scene.processor.balance(account) == {"eur": 2250}
        scene.processor.check()


async def create_session(scene: ProcessorScene, params: object) -> str:
    made = await scene.do(scene.client.v1.checkout.sessions.create, params, {"idempotency_key": "checkout:7"})
    return made.id
