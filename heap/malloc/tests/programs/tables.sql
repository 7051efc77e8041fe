-- SQLite under the allocator: 300 000 rows, indexes, joins, updates, text of all lengths, and its own integrity check.
-- The rows are numbers of a fixed sequence, so every result is the same on every run.
.bail on
pragma journal_mode = wal;
pragma temp_store = memory;
pragma cache_size = -32000;
pragma threads = 2;

create table person (id integer primary key, number integer, name text, note blob);
insert into person
with recursive walk (id, number) as (
    select 1, 12345
    union all
    select id + 1, (number * 1103515245 + 12345) & 2147483647 from walk where id < 100000
)
select id, number, printf('name %x %s', number, substr('abcdefghijklmnopqrstuvwxyz', 1, number % 26)),
    zeroblob(number / 7 % 200)
from walk;

create table payment (id integer primary key, person integer, cents integer, words text);
insert into payment
with recursive walk (id, number) as (
    select 1, 54321
    union all
    select id + 1, (number * 1103515245 + 12345) & 2147483647 from walk where id < 200000
)
select id, number / 16 % 100000 + 1, number % 9973, hex(zeroblob(number / 64 % 90)) from walk;

create index person_name on person (name);
create unique index person_number on person (number, id);
create index payment_person on payment (person, cents);
analyze;

select 'rows', (select count(*) from person), (select count(*) from payment);
select 'join', count(*), sum(cents * (person.number % 1009)), max(name)
from payment join person on person.id = payment.person where person.name > 'name 3';
select 'groups', count(*), sum(total), max(longest) from (
    select person % 997 as class, sum(cents) as total, max(length(words)) as longest from payment group by class
);
select 'window', sum(place * cents % 1013) from (
    select cents, row_number() over (partition by person % 50 order by cents, id) as place from payment
);
select 'json', sum(length(list)), sum(json_array_length(list)) from (
    select json_group_array(json_object('id', id, 'cents', cents)) as list from payment group by person % 3000
);
select 'distinct', count(distinct substr(name, 6, 4)), count(distinct cents) from person join payment using (id);

begin;
update payment set words = words || 'ABCDEF', cents = cents + 1 where id % 3 = 0;
delete from person where id % 10 = 7;
savepoint half;
delete from payment;
rollback to half;
commit;
vacuum;
pragma integrity_check;
pragma foreign_key_check;
.sha3sum
