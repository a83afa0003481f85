"""Everyday programs of money, dates, texts, ids, filters and tables, as people write them who know NumPy and nothing of
encryption."""

from __future__ import annotations

import numpy as np

from ciphervec import fold, programs, public, secret
from everyday import case

R = np.random.default_rng(13)
ASCII = {"low": 32, "high": 126}
DAYS = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
RATES = np.array([0, 10, 20, 40, 45])
BLOCKED = R.integers(0, 2**32, 12)
SHOPS = R.integers(0, 50, (16, 2))
WORDS = R.integers(97, 123, (6, 5))
POINTS = np.array([1, 3, 3, 2, 1, 4, 2, 4, 1, 8, 5, 1, 3, 1, 1, 3, 10, 1, 1, 1, 1, 4, 4, 8, 4, 10])


# Money


@case(price=secret(10, bits=12, step=0.01), many=secret(10, bits=4))
def invoice(price, many):
    net = (price * many).sum()
    return net, net * 1.19


@case(income=secret(20, low=0, high=4000))
def tax_brackets(income):
    tax = 0
    for over, rate in ((0, 0.0), (600, 0.1), (1500, 0.2), (3000, 0.3)):
        tax = tax + rate * np.maximum(income - over, 0)
    return tax


@case(amount=secret((), low=1000, high=50000), rate=secret((), low=0.001, high=0.01, real=True))
def loan(amount, rate):
    return amount * rate / (1 - (1 + rate) ** -24)


@case(flows=secret(12, low=-500, high=500))
def net_present_value(flows):
    return (flows / 1.05 ** np.arange(12)).sum()


@case(x=secret(24, low=50, high=150))
def daily_returns(x):
    return x[1:] / x[:-1] - 1


@case(x=secret(16, low=50.0, high=150.0, real=True))
def log_returns_deviation(x):
    r = np.diff(np.log(x))
    return r.mean(), r.std()


@case(x=secret(12, low=0, high=63))
def largest_drawdown(x):
    return (np.maximum.accumulate(x) - x).max()


@case(x=secret(12, low=0, high=63))
def best_trade(x):
    return (x - np.minimum.accumulate(x)).max()


@case(balance=secret(30, low=-1000, high=1000))
def days_in_debt(balance):
    return (balance < 0).sum(), np.where(balance < 0, balance, 0).min()


@case(moves=secret(16, low=-20, high=20))
def running_balance(moves):
    balance = np.cumsum(moves)
    return balance, (balance < -100).any()


@case(spent=secret(24, bits=8), what=secret(24, bits=2))
def budget_by_category(spent, what):
    return np.array([(spent * (what == k)).sum() for k in range(4)])


@case(total=secret((), low=0, high=200), member=secret((), boolean=True))
def shop_discount(total, member):
    off = np.where(total >= 100, 10, np.where(total >= 50, 5, 0))
    return total - off - np.where(member, 3, 0)


@case(cents=secret(8, low=0, high=500))
def round_to_five_cents(cents):
    return (cents + 2) // 5 * 5


@case(cents=secret((), low=0, high=199))
def coins(cents):
    out = []
    for coin in (50, 20, 10, 5, 2, 1):
        out.append(cents // coin)
        cents = cents % coin
    return np.stack(out)


@case(bids=secret(8, bits=8), reserve=secret((), bits=8))
def auction_with_reserve(bids, reserve):
    best = bids.max()
    return np.where(best >= reserve, np.argmax(bids), -1), best >= reserve


@case(buy=secret(6, bits=4), sell=secret(6, bits=4))
def order_book(buy, sell):
    prices = np.arange(16)
    demand = (buy[:, None] >= prices).sum(0)
    supply = (sell[:, None] <= prices).sum(0)
    return np.argmax(np.minimum(demand, supply))


@case(w=secret(5, low=0.0, high=1.0, real=True), c=secret((5, 5), low=-1.0, high=1.0, real=True))
def portfolio_risk(w, c):
    return w @ c @ w


@case(x=secret(20, low=0, high=100))
def min_max_scaled(x):
    return (x - x.min()) / np.maximum(x.max() - x.min(), 1)


@case(x=secret(10, low=0, high=40))
def parts_of_the_largest(x):
    return x / np.maximum(x.max(), 1)


@case(score=secret(30, low=300, high=850), pay=secret(30, low=0, high=200))
def loans_approved(score, pay):
    return ((score > 620) & (pay > 30)) | (score > 760)


# Dates and times


@case(year=secret(8, low=1990, high=2040))
def leap_year(year):
    return ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)


@case(month=secret(4, low=1, high=12), day=secret(4, low=1, high=31), before=public(DAYS))
def day_of_year(month, day, before):
    return before[month - 1] + day


@case(born=secret(40, low=0, high=40000), today=secret((), low=0, high=40000))
def is_adult(born, today):
    return today - born >= 6570


@case(a=secret((10, 2), low=0, high=365), q=secret(2, low=0, high=365))
def bookings_overlap(a, q):
    return np.any((a[:, 0] < q[1]) & (q[0] < a[:, 1]))


@case(minutes=secret(12, low=0, high=1439))
def hours_and_minutes(minutes):
    return minutes // 60, minutes % 60


@case(day=secret(10, low=0, high=730))
def weekends(day):
    return ((day + 3) % 7 >= 5).sum()


@case(start=secret(8, low=0, high=1439), end=secret(8, low=0, high=1439))
def shift_length(start, end):
    return np.where(end >= start, end - start, end - start + 1440)


@case(seen=secret(20, low=0, high=10**9), now=secret((), low=0, high=10**9))
def active_last_week(seen, now):
    return (seen > now - 604800).sum()


@case(t=secret(10, low=0, high=23))
def night_rate(t):
    return np.where((t >= 22) | (t < 6), 12, 30).sum()


@case(date=secret(16, low=20000101, high=20301231))
def dates_in_range(date):
    return (date >= 20240101) & (date <= 20241231)


# Texts


@case(a=secret(12, **ASCII), b=secret(12, **ASCII))
def string_equal(a, b):
    return np.all(a == b)


@case(a=secret(10, **ASCII), b=secret(10, **ASCII))
def equal_ignore_case(a, b):
    def lower(x):
        return np.where((x >= 65) & (x <= 90), x + 32, x)

    return np.array_equal(lower(a), lower(b))


@case(text=secret(24, low=97, high=122), word=secret(3, low=97, high=122))
def substring(text, word):
    return np.any(np.stack([np.all(text[i : i + 3] == word) for i in range(22)]))


@case(text=secret(30, **ASCII))
def count_vowels(text):
    return np.isin(text, [97, 101, 105, 111, 117]).sum()


@case(text=secret(20, **ASCII))
def is_number(text):
    return np.all((text >= 48) & (text <= 57))


@case(text=secret(9, low=97, high=122))
def palindrome(text):
    return (text == text[::-1]).all()


@case(text=secret(16, low=97, high=122))
def caesar(text):
    return (text - 97 + 13) % 26 + 97


@case(text=secret(12, low=97, high=122), words=public(WORDS))
def starts_with_any(text, words):
    return (text[:5] == words).all(axis=1).any()


@case(word=secret(5, low=97, high=122), words=public(WORDS))
def spell_best(word, words):
    return np.argmin((words != word).sum(axis=1))


@case(word=secret(7, low=0, high=25), points=public(POINTS))
def scrabble(word, points):
    return points[word].sum()


@case(a=secret(6, low=97, high=122), b=secret(6, low=97, high=122))
def anagram(a, b):
    return np.array_equal(np.sort(a), np.sort(b))


@case(text=secret(24, low=97, high=122))
def letter_counts(text):
    return np.bincount(text - 97, minlength=26)


@case(digits=secret(16, low=0, high=9))
def luhn(digits):
    double = digits[::2] * 2
    return (np.where(double > 9, double - 9, double).sum() + digits[1::2].sum()) % 10 == 0


@case(digits=secret(13, low=0, high=9))
def ean13(digits):
    return (digits[::2].sum() + 3 * digits[1::2].sum()) % 10 == 0


@case(guess=secret(5, low=0, high=25), word=secret(5, low=0, high=25))
def wordle(guess, word):
    green = guess == word
    yellow = (guess[:, None] == word[None, :]).any(axis=1)
    return np.where(green, 2, np.where(yellow, 1, 0))


# Ids and filters


@case(ids=secret(30, bits=32), mine=secret((), bits=32))
def contains_id(ids, mine):
    return np.any(ids == mine)


@case(ip=secret((), bits=32), blocked=public(BLOCKED))
def blocked_address(ip, blocked):
    return (blocked == ip).any()


@case(a=secret(12, bits=8), b=secret(10, bits=8))
def shared_ids(a, b):
    return np.isin(a, b).sum()


@case(ids=secret(12, bits=6))
def any_repeated(ids):
    same = ids[:, None] == ids[None, :]
    return same.sum() > 12


@case(keys=secret(20, bits=12), values=secret(20, bits=8), want=secret((), bits=12))
def key_value(keys, values, want):
    return np.where(keys == want, values, 0).sum()


@case(user=secret((), bits=8), table=public(R.integers(0, 100, 256)))
def permission_level(user, table):
    return table[user] >= 50


@case(x=secret((20, 3), bits=7), q=secret((2, 3), bits=7))
def rows_in_box(x, q):
    return ((x >= q[0]) & (x <= q[1])).all(axis=1)


@case(age=secret(25, low=0, high=110), city=secret(25, bits=4), paid=secret(25, boolean=True))
def rows_that_match(age, city, paid):
    return np.sum((age > 30) & (age < 60) & ((city == 3) | (city == 7)) & ~paid)


@case(me=secret(2, low=0, high=49), shops=public(SHOPS))
def nearest_shop(me, shops):
    d = np.abs(shops - me).sum(axis=1)
    return np.argmin(d), d.min()


# Tables


@case(x=secret((6, 4), bits=5))
def row_of_largest_sum(x):
    return np.argmax(x.sum(axis=1)), x.sum(axis=0)


@case(group=secret(20, low=0, high=3), pay=secret(20, low=0, high=100))
def mean_by_group(group, pay):
    is_in = group[:, None] == np.arange(4)
    return (is_in * pay[:, None]).sum(0) / np.maximum(is_in.sum(0), 1)


@case(group=secret(16, low=0, high=3), x=secret(16, bits=5))
def max_by_group(group, x):
    return np.stack([np.where(group == k, x, 0).max() for k in range(4)])


@case(a=secret(24, low=0, high=2), b=secret(24, low=0, high=2))
def cross_table(a, b):
    return np.array([[((a == i) & (b == j)).sum() for j in range(3)] for i in range(3)])


@case(left=secret(8, bits=5), right=secret(8, bits=5), value=secret(8, bits=6))
def left_join(left, right, value):
    return (left[:, None] == right[None, :]) @ value


@case(votes=secret((15, 4), boolean=True))
def approval_vote(votes):
    return np.argmax(votes.sum(axis=0))


@case(score=secret((5, 6), low=0, high=10))
def drop_worst_mark(score):
    return (score.sum(axis=1) - score.min(axis=1)) / 5


@case(answers=secret(20, low=0, high=3), key=secret(20, low=0, high=3))
def exam(answers, key):
    right = np.count_nonzero(answers == key)
    return right, np.where(right >= 12, 1, 0)


@case(x=secret(16, low=-1, high=50))
def mean_of_known(x):
    known = x >= 0
    return np.where(known, x, 0).sum() / np.maximum(known.sum(), 1)


@case(x=secret((8, 3), bits=4), order=public(np.array([2, 0, 1])))
def columns_in_order(x, order):
    return x[:, order] * 2 + 1


@case(x=secret((4, 6), bits=4, signed=True))
def pivot_totals(x):
    return np.vstack([x, x.sum(axis=0, keepdims=True)])


@case(steps=secret((8, 2), low=-2, high=2))
def chained_updates(steps):
    def then(f, g):
        return np.stack([f[..., 0] * g[..., 0], f[..., 1] * g[..., 0] + g[..., 1]], axis=-1)

    return fold(then, steps.reshape(-1), length=2)


@case(a=secret(10, bits=4), b=secret(10, bits=4))
def top_two_then_sum(a, b):
    both = a + b
    return np.where(programs.topk_mask(both, 2), both, 0).sum()
