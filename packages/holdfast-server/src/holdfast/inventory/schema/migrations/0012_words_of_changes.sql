-- A column says when the service received the change of an order.

alter table order_level_changes rename told_at to received_at;
