-- SQLite in memory: two tables, indexes, joins, groups, updates, deletes. The rows are numbers of a
-- fixed sequence, so each result is the same each time.
.bail on
pragma temp_store = memory;
create table person (id integer primary key, number integer, name text);
insert into person
with recursive walk (id, number) as (
    select 1, 12345
    union all
    select id + 1, (number * 1103515245 + 12345) & 2147483647 from walk where id < @AMOUNT@ / 3
)
select id, number, printf('name %x %s', number, substr('abcdefghijklmnopqrstuvwxyz', 1, number % 26))
from walk;
create table payment (id integer primary key, person integer, cents integer, words text);
insert into payment
with recursive walk (id, number) as (
    select 1, 54321
    union all
    select id + 1, (number * 1103515245 + 12345) & 2147483647 from walk where id < @AMOUNT@
)
select id, number / 16 % (@AMOUNT@ / 3) + 1, number % 9973, hex(zeroblob(number / 64 % 60)) from walk;
create index person_name on person (name);
create index payment_person on payment (person, cents);
select count(*), sum(cents), max(name) from payment join person on person.id = payment.person;
select count(*), sum(total) from (
    select person % 997 as class, sum(cents) as total, max(words) from payment group by class
);
select sum(length(list)) from (
    select json_group_array(json_object('id', id, 'cents', cents)) as list from payment group by person % 3000
);
select count(distinct words), count(distinct cents) from payment;
update payment set words = words || 'ABCDEF' where id % 3 = 0;
delete from person where id % 10 = 7;
select count(*), sum(length(words)) from payment;
select count(*) from person where name > 'name 3';
