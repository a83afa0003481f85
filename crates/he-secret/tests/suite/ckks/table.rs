//! Look-up tables on encrypted integers at a small insecure degree: values, cleanings, refusals.

use super::exponential::Owner;
use super::support::numbers;
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    BootstrapSpec, Bootstrapper, Ciphertext, Complex, Components, Evaluator, Expected, Exponential,
    ExponentialSpec, LookupTable, Noise, Ring, SecretKey,
};
use ciphervec_he_secret::params::Security;
use std::time::Instant;

fn spec(levels: usize) -> ExponentialSpec {
    ExponentialSpec {
        log_degree: 10,
        base_bits: 50,
        levels,
        scale_bits: 45,
        slots_to_coefficients: 2,
        slots_to_coefficients_bits: 42,
        exponential_bits: 49,
        doublings: 3,
        coefficients_to_slots: 2,
        coefficients_to_slots_bits: 48,
        special_primes: 6,
        special_bits: 50,
        digits: 5,
        range: 16.0,
        security: Security::Classical128,
    }
}

/// Spent ciphertexts of `values`.
fn spend(owner: &Owner, values: &[Complex]) -> Ciphertext {
    owner.encrypt(values, owner.exponential.plan().unwrap().lowest_level)
}

/// A value for each integer, in no order.
fn values(p: usize) -> Vec<f64> {
    (0..p).map(|j| ((j * j * 7 + 2 * j + 1) % p) as f64 / p as f64 - 0.3).collect()
}

/// Pairs of integers modulo p.
fn integers(p: usize, count: usize) -> Vec<[usize; 2]> {
    (0..count).map(|k| [k % p, (k * k + 5 * k / p) % p]).collect()
}

fn over(pairs: &[[usize; 2]], p: usize) -> Vec<Complex> {
    let x = |j: usize| j as f64 / p as f64;
    pairs.iter().map(|&[re, im]| Complex::new(x(re), x(im))).collect()
}

/// Every integer, in both parts, and the errors that the plan says.
#[test]
fn values_are_those_of_the_table() {
    let owner = Owner::new(spec(8));
    let exponential = &owner.exponential;
    for p in [2, 5, 16, 256] {
        let table = LookupTable::new(&values(p)).unwrap();
        let plan = exponential.table_plan(&table).unwrap();
        let pairs = integers(p, 512);
        let spent = spend(&owner, &over(&pairs, p));
        let found = exponential.table(&spent, &table, Components::Both, &owner.keys).unwrap();
        assert_eq!(found.level(), plan.level);
        let (mut square, mut largest) = (0.0, 0.0f64);
        for (&[re, im], found) in pairs.iter().zip(owner.decrypt(&found)) {
            let error = found - Complex::new(table.values()[re], table.values()[im]);
            square += error.norm_sqr() / 1024.0;
            largest = largest.max(error.re.abs()).max(error.im.abs());
        }
        let measured = -square.sqrt().log2();
        let said = || format!("p = {p}: {measured:.2} bits, worst {largest:e}, by {plan:?}");
        assert!(measured >= plan.precision_bits - 0.3, "{}", said());
        assert!(measured <= plan.precision_bits + 2.0, "{}", said());
        assert!(-largest.log2() >= plan.bound_bits);
        assert!(largest <= found.noise().bound / found.scale());
    }
}

/// Integers that are off by up to a tenth: what a table makes of them, plain and cleaned, is what
/// it does on doubles.
#[test]
fn cleanings_take_errors_of_integers_away() {
    let owner = Owner::new(spec(14));
    let exponential = &owner.exponential;
    let p = 8;
    let plain = LookupTable::new(&values(p)).unwrap();
    let off: Vec<f64> =
        numbers(exponential.params(), 512, 3).iter().map(|z| 0.1 * z.re / p as f64).collect();
    let pairs = integers(p, 512);
    let exact = over(&pairs, p);
    let shifted: Vec<Complex> = exact.iter().zip(&off).map(|(z, off)| z + off).collect();
    let spent = spend(&owner, &shifted);
    let mut largest = Vec::new();
    for cleanings in 0..3 {
        let table = plain.clone().with_cleanings(cleanings).unwrap();
        let found = exponential.table(&spent, &table, Components::Real, &owner.keys).unwrap();
        assert_eq!(found.level(), exponential.table_plan(&table).unwrap().level);
        let (mut wrong, mut distance) = (0.0f64, 0.0f64);
        for ((found, x), &[j, _]) in owner.decrypt(&found).iter().zip(&shifted).zip(&pairs) {
            wrong = wrong.max((found.re - table.evaluate(x.re)).abs());
            distance = distance.max((found.re - table.values()[j]).abs());
        }
        assert!(wrong < f64::exp2(-20.0), "{cleanings} cleanings: {wrong:e} from doubles");
        largest.push(distance);
    }
    assert!(largest[1] < 0.6 * largest[0] && largest[2] < 0.1 * largest[1], "{largest:?}");
}

/// Sums of integers are sums modulo p; what is looked up is integers again, as often as one likes:
/// after six tables no digit is wrong.
#[test]
fn integers_are_computed_with() {
    let owner = Owner::new(spec(9));
    let exponential = &owner.exponential;
    let p = 16;
    let square: Vec<usize> = (0..p).map(|j| (j * j + 3) % p).collect();
    let entries: Vec<f64> = square.iter().map(|&j| j as f64 / p as f64).collect();
    let table = LookupTable::new(&entries).unwrap();
    let pairs = integers(p, 64);
    let (mut expected, fixed) = (pairs.iter().map(|p| p[0]).collect::<Vec<_>>(), over(&pairs, p));
    let evaluator = Evaluator::without_keys(exponential.params().clone());
    let mut x = spend(&owner, &fixed);
    for _ in 0..6 {
        let found = exponential.table(&x, &table, Components::Real, &owner.keys).unwrap();
        let level = exponential.plan().unwrap().lowest_level;
        let found = evaluator.match_level(&found, level).unwrap();
        // And the integer itself on top.
        x = evaluator.add(&found, &spend(&owner, &fixed)).unwrap();
        expected = expected.iter().zip(&pairs).map(|(&j, [k, _])| square[j % p] + k).collect();
    }
    assert_eq!(x.slots(), 64);
    for (found, &expected) in owner.decrypt(&x).iter().zip(&expected) {
        let error = found.re * p as f64 - expected as f64;
        assert!(error.abs() < f64::exp2(-12.0), "{error:e}");
    }
    // All bits of one integer at once.
    let bits: Vec<LookupTable> = (0..4)
        .map(|bit| (0..p).map(|j| f64::from(j as u32 >> bit & 1)).collect::<Vec<_>>())
        .map(|bit| LookupTable::new(&bit).unwrap())
        .collect();
    let tables: Vec<&LookupTable> = bits.iter().collect();
    let root = exponential.from_slots(&x, Components::Real, &owner.keys).unwrap().remove(0);
    let found = exponential.look_up_all(&root, &tables, &owner.keys).unwrap();
    assert_eq!(found.len(), 4);
    for (bit, found) in found.iter().enumerate() {
        for (found, &expected) in owner.decrypt(found).iter().zip(&expected) {
            let error = found.re - f64::from(expected as u32 >> bit & 1);
            assert!(error.abs() <= found_bound(&bits[bit], exponential), "{error:e}");
        }
    }
    // A table of one value, and beside others.
    let constant = LookupTable::new(&[0.75; 16]).unwrap();
    let found = exponential.look_up_all(&root, &[&constant, &bits[2]], &owner.keys).unwrap();
    assert_eq!(found[0].level(), found[1].level());
    let alone = exponential.look_up(&root, &constant, &owner.keys).unwrap();
    for found in [&found[0], &alone] {
        assert!(owner.decrypt(found).iter().all(|value| (value.re - 0.75).abs() < 1e-6));
    }
}

fn found_bound(table: &LookupTable, exponential: &Exponential) -> f64 {
    // The integers came off by some 2^-14 each.
    let slope = core::f64::consts::TAU * f64::exp2(-14.0) * 4.0;
    (-exponential.table_plan(table).unwrap().bound_bits).exp2() + slope
}

/// What is forecast of values and what their ciphertexts say of themselves: the same but for
/// errors, which are those of the worst integer.
#[test]
fn forecasts_are_of_what_ciphertexts_become() {
    let owner = Owner::new(spec(8));
    let exponential = &owner.exponential;
    let p = 16;
    let deep = LookupTable::new(&values(p)).unwrap();
    let flat = LookupTable::new(&[0.5; 16]).unwrap();
    let x = spend(&owner, &over(&integers(p, 8), p));
    let root = exponential.from_slots(&x, Components::Real, &owner.keys).unwrap().swap_remove(0);
    for tables in [&[&deep][..], &[&flat, &deep], &[&flat]] {
        let found = exponential.look_up_all(&root, tables, &owner.keys).unwrap();
        let said = exponential.looked_up(&x.expected(), tables).unwrap();
        for (found, said) in found.iter().zip(&said) {
            let known = found.expected();
            assert_eq!((known.level, known.degree, known.slots), (said.level, 1, said.slots));
            assert!((known.scale / said.scale - 1.0).abs() < 1e-9);
            assert_eq!((known.magnitude, known.noise.bound), (said.magnitude, said.noise.bound));
            let more = said.noise.std / known.noise.std;
            assert!((1.0..4.0).contains(&more), "{more}");
        }
    }
    // Key switches of the exponential, and of the table with its conjugation; another one adds its
    // own.
    let plan = exponential.plan().unwrap();
    let [one, two] =
        [&[&deep][..], &[&deep, &deep]].map(|tables| exponential.work(tables).unwrap().total());
    let switches = plan.relinearisations + deep.relinearisations() - 1;
    assert_eq!(one.relinearisations, switches as u64);
    assert_eq!(two.rotations, one.rotations + 1);
    assert!((one.transforms..2 * one.transforms).contains(&two.transforms));
    // An error of a number comes out as the table's slope times it.
    let level = exponential.plan().unwrap().lowest_level;
    let scale = exponential.params().scale(level);
    let noise = Noise { std: scale * f64::exp2(-18.0), bound: scale * f64::exp2(-11.0) };
    let off = Expected { noise, ..x.expected() };
    let said = exponential.looked_up(&off, &[&deep]).unwrap()[0];
    let ratio = said.noise.std / said.scale / (noise.std / scale) / deep.slope();
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
    let far = Noise { std: 64.0 * noise.std, ..noise };
    let far = Expected { noise: far, ..off };
    assert!(matches!(exponential.looked_up(&far, &[&deep]), Err(Error::Range { .. })));
    assert!(matches!(
        exponential.looked_up(&Expected { level: level - 1, ..off }, &[&deep]),
        Err(Error::Level { .. })
    ));
}

/// One set and one set of keys for both: numbers are looked up, computed with and refreshed in turn.
#[test]
fn tables_are_looked_up_beside_bootstrapping() {
    let sizes = BootstrapSpec {
        ring: Ring::Standard,
        log_degree: 10,
        log_slots: 9,
        levels: 5,
        scale_bits: 40,
        slots_to_coefficients: 2,
        slots_to_coefficients_bits: 36,
        reduction_bits: 43,
        reduction_top_bits: 48,
        reduction_rise: 1,
        doublings: 0,
        straight: true,
        inverse_sine: false,
        coefficients_to_slots: 3,
        coefficients_to_slots_bits: 45,
        key_cost: 2,
        special_primes: 6,
        special_bits: 50,
        digits: 4,
        range: 16.0,
        iterations: 1,
        residual_bits: 0,
        security: Security::Classical128,
    };
    let bootstrapper = Bootstrapper::insecure_new(sizes).unwrap();
    let key = SecretKey::generate(bootstrapper.params()).unwrap();
    let keys = key.bootstrapping_keys(&bootstrapper).unwrap();
    let exponential = Exponential::beside(&bootstrapper).unwrap();
    assert_eq!(exponential.key_plans(), bootstrapper.key_plans());
    let owner = Owner { exponential, key, keys };
    let (exponential, plan) = (&owner.exponential, owner.exponential.plan().unwrap());
    assert_eq!(plan.level, bootstrapper.level());
    let p = 16;
    let square: Vec<usize> = (0..p).map(|j| (j * j + 3) % p).collect();
    let entries: Vec<f64> = square.iter().map(|&j| j as f64 / p as f64).collect();
    let table = LookupTable::new(&entries).unwrap();
    let pairs = integers(p, 512);
    let mut expected: Vec<usize> = pairs.iter().map(|p| p[0]).collect();
    let mut x = spend(&owner, &over(&pairs, p));
    let said = exponential.table_plan(&table).unwrap();
    for _ in 0..2 {
        let found = exponential.table(&x, &table, Components::Real, &owner.keys).unwrap();
        assert_eq!(found.level(), said.level);
        x = bootstrapper.bootstrap(&found, &owner.keys).unwrap();
        assert_eq!(x.level(), bootstrapper.level());
        // Three times the integer, modulo p.
        let evaluator = Evaluator::without_keys(exponential.params().clone());
        x = evaluator.multiply_integer(&x, 3).unwrap();
        expected = expected.iter().map(|&j| 3 * square[j] % p).collect();
    }
    let found = exponential.table(&x, &table, Components::Real, &owner.keys).unwrap();
    for (found, &j) in owner.decrypt(&found).iter().zip(&expected) {
        assert!((found.re - entries[j]).abs() < f64::exp2(-12.0), "{found} for {}", entries[j]);
    }
    // The turns alone are as precise as they are said to be.
    let exact = over(&pairs, p);
    let spent = spend(&owner, &exact);
    let roots = exponential.from_slots(&spent, Components::Real, &owner.keys).unwrap();
    let errors = owner.decrypt(&roots[0]).into_iter().zip(&exact);
    let errors =
        errors.map(|(root, z)| (root - Complex::cis(core::f64::consts::TAU * z.re)).norm());
    let square = errors.map(|error| error * error).sum::<f64>() / 1024.0;
    let measured = -square.sqrt().log2();
    assert!((measured - plan.precision_bits).abs() < 0.3, "{measured:.2} bits by {plan:?}");
    // Coefficients need a key of their own, and an exponential levels of its own.
    let error = exponential.from_coefficients(&spent, Components::Real, &owner.keys).unwrap_err();
    assert!(matches!(error, Error::Range { .. }), "{error}");
    let long = BootstrapSpec { doublings: 2, straight: false, inverse_sine: true, ..sizes };
    let long = Exponential::beside(&Bootstrapper::insecure_new(long).unwrap()).unwrap();
    let deeper = long.plan().unwrap();
    assert!(deeper.precision_bits > plan.precision_bits - 0.5, "{deeper:?}");
    let short = BootstrapSpec { straight: false, ..sizes };
    let short = Bootstrapper::insecure_new(short).unwrap();
    assert!(matches!(Exponential::beside(&short), Err(Error::Range { .. })));
}

#[test]
fn what_cannot_be_looked_up_is_refused() {
    let owner = Owner::new(spec(4));
    let exponential = &owner.exponential;
    let spent = spend(&owner, &[Complex::from(0.25); 8]);
    let [four, five] = [16, 32].map(|p| LookupTable::new(&values(p)).unwrap());
    let level = |table: &LookupTable| {
        exponential.table(&spent, table, Components::Real, &owner.keys).unwrap_err()
    };
    assert!(matches!(level(&five), Error::Level { .. }));
    assert!(matches!(level(&four.clone().with_cleanings(1).unwrap()), Error::Level { .. }));
    assert!(matches!(exponential.table_plan(&five), Err(Error::Level { .. })));
    let root = exponential.from_slots(&spent, Components::Real, &owner.keys).unwrap().remove(0);
    let all = |tables: &[&LookupTable]| exponential.look_up_all(&root, tables, &owner.keys);
    assert!(matches!(all(&[]), Err(Error::Range { .. })));
    assert!(matches!(all(&[&four, &five]), Err(Error::Range { .. })));
    // A root whose error is over a sixteenth, as far as is known.
    let evaluator = Evaluator::without_keys(exponential.params().clone());
    let zero = evaluator.sub(&root, &root).unwrap();
    let noisy = evaluator.add(&root, &evaluator.multiply_integer(&zero, 1 << 26).unwrap()).unwrap();
    let error = exponential.look_up(&noisy, &four, &owner.keys).unwrap_err();
    assert!(matches!(error, Error::Range { .. }), "{error}");
}

/// Bytes at a degree to be used: every one looked up, half-bytes that are off by a tenth, and bytes
/// beside bootstrapping.
#[test]
#[ignore = "two minutes and 8 GB; run in release"]
fn bytes_are_looked_up_at_full_size() {
    let exponential = Exponential::new(ExponentialSpec::degree_65536()).unwrap();
    let key = SecretKey::generate(exponential.params()).unwrap();
    let keys = key.exponential_keys(&exponential).unwrap();
    let owner = Owner { exponential, key, keys };
    looks_up(&owner, 256, 0, 0.0);
    looks_up(&owner, 16, 1, 0.1);
    drop(owner);
    let bootstrapper = Bootstrapper::new(BootstrapSpec::degree_65536()).unwrap();
    let key = SecretKey::generate(bootstrapper.params()).unwrap();
    let keys = key.bootstrapping_keys(&bootstrapper).unwrap();
    let exponential = Exponential::beside(&bootstrapper).unwrap();
    println!("{:?}", exponential.plan().unwrap());
    looks_up(&Owner { exponential, key, keys }, 256, 0, 0.0);
}

/// Every slot, half of the integers modulo p off by `off`.
fn looks_up(owner: &Owner, p: usize, cleanings: usize, off: f64) {
    let exponential = &owner.exponential;
    let table = LookupTable::new(&values(p)).unwrap().with_cleanings(cleanings).unwrap();
    let plan = exponential.table_plan(&table).unwrap();
    let pairs = integers(p, exponential.params().max_slots());
    let mut exact = over(&pairs, p);
    exact.iter_mut().step_by(2).for_each(|z| z.re += off / p as f64);
    let spent = spend(owner, &exact);
    let start = Instant::now();
    let found = exponential.table(&spent, &table, Components::Real, &owner.keys).unwrap();
    println!("{:.2} s", start.elapsed().as_secs_f64());
    let errors = owner.decrypt(&found).into_iter().zip(&exact).zip(&pairs);
    let errors = errors.map(|((found, x), &[j, _])| {
        assert!((found.re - table.values()[j]).abs() < 0.2 / p as f64 + off);
        found.re - table.evaluate(x.re)
    });
    // Those of exact integers: the others are where a cleaning is not flat.
    let errors: Vec<f64> = errors.skip(1).step_by(2).collect();
    let square = errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64;
    println!("p = {p}: {:.2} bits; {plan:?}", -square.sqrt().log2());
    assert!(-square.sqrt().log2() >= plan.precision_bits - 0.3);
}
