"""The socket of a service belongs to its process alone."""

from holdfast.kit.http.sockets import listen


def test_a_subprocess_does_not_keep_the_port_of_its_service() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert not listener.get_inheritable()
