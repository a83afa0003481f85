//! Attacks on the sealed scheme: each succeeds on a weakened fixture and fails on what the product
//! does.

use crate::rows::Rows;
use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::keys::{MasterKey, Purpose};
use ciphervec_he_secret::lattice::compact::{
    self, AskedQueries, CheckWeights, Compact, Scratch, Unmasked, Width, Words,
};
use ciphervec_he_secret::lattice::ring::{self, Binding, Layout, QueryKey, QueryOpener, Ring};
use ciphervec_he_secret::lattice::{Plaintext, SegmentId};

/// What the product rounds scores to before anyone sees them.
const ROUNDING: f64 = 1.0 / 65_536.0;

fn ternary(seed: &[u8; 32], degree: usize) -> Vec<i8> {
    let mut secret = vec![0i8; degree];
    Stream::new(seed, 0).ternary(&mut secret);
    secret
}

/// Negacyclic product modulo 2^64, by the definition.
fn convolve(a: &[u64], b: &[u64]) -> Vec<u64> {
    let n = a.len();
    let mut out = vec![0u64; n];
    for (i, &x) in a.iter().enumerate().filter(|(_, x)| **x != 0) {
        let (head, tail) = b.split_at(n - i);
        out[i..]
            .iter_mut()
            .zip(head)
            .for_each(|(out, &y)| *out = out.wrapping_add(x.wrapping_mul(y)));
        out[..i]
            .iter_mut()
            .zip(tail)
            .for_each(|(out, &y)| *out = out.wrapping_sub(x.wrapping_mul(y)));
    }
    out
}

/// The inverse modulo X^N + 1 and 2^64 of a polynomial with odd a(1): a^(2^m) = a(1) modulo 2, then
/// Newton's lifting.
fn invert(a: &[u64]) -> Vec<u64> {
    let n = a.len();
    let bits: Vec<u64> = a.iter().map(|x| x & 1).collect();
    // a^(N − 1) modulo 2: the product of a^(2^j), each of which spreads the exponents.
    let mut inverse = vec![0u64; n];
    inverse[0] = 1;
    for power in 0..n.trailing_zeros() {
        let mut spread = vec![0u64; n];
        bits.iter().enumerate().for_each(|(i, bit)| spread[(i << power) % n] ^= bit);
        inverse = convolve(&spread, &inverse).iter().map(|x| x & 1).collect();
    }
    for _ in 0..6 {
        let mut error: Vec<u64> = convolve(a, &inverse).iter().map(|x| x.wrapping_neg()).collect();
        error[0] = error[0].wrapping_add(2);
        inverse = convolve(&inverse, &error);
    }
    inverse
}

/// One plain query over one block in mode `sealed-index`: what the server knows, and what it would
/// learn from scores.
struct Exposed {
    combined: Vec<u64>,
    sums: Vec<u64>,
    scores: Vec<f64>,
    unit: f64,
    secret: Vec<i8>,
}

fn expose() -> Exposed {
    let (dimension, width) = (32, Width::Standard);
    let scheme = Compact::new(width).unwrap();
    let scales = width.unit_scales();
    let master = MasterKey::from_bytes([1; 32]);
    let masks = compact::Masks::new(&scheme, [2; 32], dimension);
    let (rows, _) = Rows::random_unit(width.degree(), dimension, scales.vector, 3);
    let compact::SealedRows { id, words, .. } =
        compact::seal(&scheme, &masks, &master, b"c", &rows).unwrap();
    let key = compact::SegmentKey::derive(&scheme, &master, b"c", id, width.degree());
    // A server waits for a query whose combined mask is invertible: every second one.
    let (query, combined) = (0..)
        .map(|seed| Rows::random_unit(1, dimension, scales.query, 10 + seed).0)
        .map(|query| (query.values.clone(), masks.combine(&query.values)))
        .find(|(_, combined)| combined.iter().sum::<u64>() % 2 == 1)
        .unwrap();
    let mut sums = Vec::new();
    compact::scan(width, &words, width.degree(), dimension, &query, &mut sums);
    let mut noisy = vec![0i64; width.degree()];
    let asked = AskedQueries::new(&scheme, &masks, &query);
    let mut words = Words::zeroed(width, 0);
    words.read(width, &sums);
    let out = Unmasked { sums: &mut noisy, scaled: &mut vec![0.0; width.degree()] };
    let (asked, words) = ((&asked, 0), (0, &words));
    compact::unmask(&scheme, &key, asked, words, 1.0, &mut Scratch::default(), out);
    let scores = noisy.iter().map(|sum| *sum as f64 / 32.0).collect();
    let seed =
        master.derive(Purpose::SegmentSecret, &[b"c", b"compact", &width.param_id().0, &id.0]);
    Exposed {
        combined,
        sums: sums
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| u64::from(u32::from_le_bytes(*word)))
            .collect(),
        scores,
        unit: scales.vector * scales.query,
        secret: ternary(seed.expose(), width.degree()),
    }
}

/// a' · s = 2^5 (y − score): with exact scores one multiplication by the inverse of a' is the
/// segment's secret.
fn recover(exposed: &Exposed, scores: &[f64]) -> Vec<i64> {
    let masked: Vec<u64> = exposed
        .sums
        .iter()
        .zip(scores)
        .map(|(sum, score)| (sum << 5).wrapping_sub((score * 32.0).round() as i64 as u64))
        .collect();
    let product = convolve(&invert(&exposed.combined), &masked);
    // Everything is known modulo 2^37.
    product.iter().map(|value| (value << 27) as i64 >> 27).collect()
}

#[test]
fn one_querys_unrounded_scores_give_the_segment_secret_away_and_rounded_ones_do_not() {
    let exposed = expose();
    let agree = |found: &[i64]| {
        found.iter().zip(&exposed.secret).filter(|(found, s)| **found == i64::from(**s)).count()
    };
    assert_eq!(agree(&recover(&exposed, &exposed.scores)), exposed.secret.len());
    let step = ROUNDING * exposed.unit;
    let rounded: Vec<f64> =
        exposed.scores.iter().map(|score| (score / step).round() * step).collect();
    assert_eq!(agree(&recover(&exposed, &rounded)), 0);
}

#[test]
fn sealing_twice_under_one_nonce_gives_the_difference_away_and_fresh_nonces_do_not() {
    let (dimension, width) = (8, Width::Standard);
    let scheme = Compact::new(width).unwrap();
    let master = MasterKey::from_bytes([1; 32]);
    let masks = compact::Masks::new(&scheme, [2; 32], dimension);
    let scale = width.unit_scales().vector;
    let (one, _) = Rows::random_unit(64, dimension, scale, 3);
    let (two, _) = Rows::random_unit(64, dimension, scale, 4);
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)).collect()
    };
    // [dimension][64 rows]
    let close = |a: &[u32], b: &[u32]| {
        let differences = a.iter().zip(b).map(|(a, b)| i64::from(a.wrapping_sub(*b) as i32));
        let close =
            |index: usize| one.row(index % 64)[index / 64] - two.row(index % 64)[index / 64];
        differences
            .enumerate()
            .filter(|(index, difference)| (difference - close(*index)).abs() <= 3)
            .count()
    };
    let key = compact::SegmentKey::derive(&scheme, &master, b"c", SegmentId([9; 16]), 64);
    let weights = CheckWeights::derive(&scheme, &master, b"c", SegmentId([9; 16]), 64);
    let reused = [&one, &two].map(|rows| {
        words(&compact::seal_with_key(&scheme, &masks, (&key, &weights), rows).unwrap())
    });
    assert_eq!(close(&reused[0], &reused[1]), 64 * dimension);
    let fresh = [&one, &two]
        .map(|rows| words(&compact::seal(&scheme, &masks, &master, b"c", rows).unwrap().words));
    assert!(close(&fresh[0], &fresh[1]) <= 2);
}

#[test]
fn the_ring_form_repeats_no_nonce_either() {
    let ring = Ring::new().unwrap();
    let master = MasterKey::from_bytes([1; 32]);
    let masks = ring::Masks::new([2; 32], 8);
    let layout = Layout::new(8, 0).unwrap();
    let (rows, _) = Rows::random_unit(20, 8, 1000.0, 3);
    let id = SegmentId([9; 16]);
    let key = ring::SegmentKey::derive(&ring, &master, b"c", id, &layout, 20);
    let signs = ring::RowSigns::positive();
    let opened = ring::OpenedRows { layout: &layout, key: None, signs: &signs, check: None };
    // Under one key the two ciphertexts differ by two noises: opened as a plain segment, their
    // difference is tiny.
    let plain = |bytes: &[u8]| ring::unseal(&ring, None, &opened, bytes, 20).unwrap().unwrap();
    let difference = |a: &[f64], b: &[f64]| {
        let q = ring.modulus();
        let pairs = a.iter().zip(b).map(|(a, b)| q.to_centered(q.from_i64(*a as i64 - *b as i64)));
        pairs.map(i64::abs).max().unwrap()
    };
    let reused = [(); 2]
        .map(|()| plain(&ring::seal_with_key(&ring, &masks, (&key, id), &layout, &rows).unwrap()));
    assert!(difference(&reused[0], &reused[1]) <= 58);
    let fresh = [(); 2].map(|()| {
        plain(
            &ring::seal(&ring, &masks, &master, b"c", &layout, &rows, ring.scales(1000.0, 0))
                .unwrap()
                .words,
        )
    });
    assert!(difference(&fresh[0], &fresh[1]) > 1 << 40);
    assert_eq!(rows.rows(), 20);
}

#[test]
fn unrounded_scores_give_the_query_key_away_and_rounded_ones_do_not() {
    // One-dimensional rows fill all 4096 score positions of a block: score − U = t · V, coefficient
    // by coefficient.
    let ring = Ring::new().unwrap();
    let q = ring.modulus();
    let table = ciphervec_arith::NttTable::new(ring::DEGREE, q.value()).unwrap();
    let master = MasterKey::from_bytes([1; 32]);
    let key = QueryKey::derive(&ring, &master, b"c", 0);
    let binding = Binding { index: [0; 8], mask_seed: [0; 32] };
    let keys = key.evaluation_keys(&ring, &master, b"c", binding, 1);
    let layout = Layout::new(1, 0).unwrap();
    let scales = ring.scales(65_536.0, 0);
    let rows = Rows { dimension: 1, values: (0..4096).map(|i| (i * 7919) % 65_536).collect() };
    let packed = ring::pack(&ring, &master, b"c", &layout, &rows, scales).unwrap();
    let signs = ring::RowSigns::of(packed.id, 4096);
    let packed = packed.words;
    let query = [scales.query.round() as i64];
    let pieces = key.encrypt(&ring, &layout, &query, &[3; 32], &[4; 32], 0);
    let expanded = ring::expand(&ring, &keys, &pieces, &[layout]).unwrap().remove(0);
    let sums = ring::scan(&ring, &layout, &packed, 4096, 0..1, &[&expanded]).remove(0);
    let words = ring::AnswerWords::FIRST;
    let mut answer = vec![0; words.answer_len(&layout, 4096)];
    ring::write_answer(&ring, &layout, words, 0..1, &sums, &mut answer);
    let mut scores = vec![0.0; 4096];
    let asked = ring::AskedLevel::expand(&ring, &keys, &key, None, &pieces, &[layout]).unwrap();
    let opened = ring::OpenedRows { layout: &layout, key: None, signs: &signs, check: None };
    let noise = ring::ScoreNoise::of(&layout, ring::Vectors::Plain, scales, words, false);
    let opener = QueryOpener::new(&ring, &key, &asked[0], words);
    assert!(opener.open(&opened, &noise, &query, (0, &answer), &mut scores));
    // Signs are public.
    let negated = scores.iter_mut().enumerate().filter(|(row, _)| signs.negates(*row));
    negated.for_each(|(_, score)| *score = -*score);
    // The server's side: its own answer, lifted as the owner lifts it.
    let lift = |bytes: &[u8; 3]| {
        let value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        ((u128::from(value) * u128::from(q.value()) + (1 << 23)) >> 24) as u64
    };
    let lifted: Vec<u64> = answer.as_chunks::<3>().0.iter().map(lift).collect();
    let (linear, constant) = lifted.split_at(4096);
    let mut linear = linear.to_vec();
    table.forward(&mut linear);
    let recover = |scores: &[f64]| {
        let mut product: Vec<u64> = scores
            .iter()
            .zip(constant)
            .map(|(score, u)| q.sub(q.from_i64(score.round() as i64), q.reduce(*u)))
            .collect();
        table.forward(&mut product);
        product.iter_mut().zip(&linear).for_each(|(p, v)| *p = q.mul(*p, q.inv(*v).unwrap_or(0)));
        table.inverse(&mut product);
        product.iter().map(|value| q.to_centered(*value)).collect::<Vec<i64>>()
    };
    let parts: [&[u8]; 4] = [b"c", b"ring", &Ring::param_id().0, &0u32.to_le_bytes()];
    let secret = ternary(master.derive(Purpose::QueryKey, &parts).expose(), ring::DEGREE);
    let agree = |found: &[i64]| {
        found.iter().zip(&secret).filter(|(found, t)| **found == i64::from(**t)).count()
    };
    assert_eq!(agree(&recover(&scores)), ring::DEGREE);
    let step = ROUNDING * scales.vector * scales.query;
    let rounded: Vec<f64> = scores.iter().map(|score| (score / step).round() * step).collect();
    assert_eq!(agree(&recover(&rounded)), 0);
}
