-- What is expected of a level begins with what it was at some moment of the platform. A sale before that moment is in it
-- already, also if the service counts it only later; a sale after it is not, also if the service has counted it already.

alter table levels add column based_at timestamptz;
comment on column levels.based_at is 'The moment of the platform with which `expected` began.';

create index orders_by_moment on orders (shop_id, placed_at);
