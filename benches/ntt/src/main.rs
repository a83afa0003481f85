//! Transforms of 50-bit primes by ciphervec-arith and by tfhe-ntt, best of many runs in turn, printed side by side.
//!
//! Both sides start from the same residues in the same buffer, one thread. The peer's inverse leaves a factor N in its
//! result, so its normalisation is shown with it; ours is inside.

use std::time::Instant;

use ciphervec_arith::{Backend, NttTable, Stream, ntt_primes};
use tfhe_ntt::prime64::Plan;

const ROUNDS: usize = 60;

/// The best of several rounds for each job, in microseconds, the jobs taking turns so that none has a quieter machine.
fn best<const N: usize>(
    calls: usize,
    data: &mut [u64],
    jobs: [&dyn Fn(&mut [u64]); N],
) -> [f64; N] {
    let mut times = [f64::INFINITY; N];
    for _ in 0..ROUNDS {
        for (time, job) in times.iter_mut().zip(jobs) {
            let start = Instant::now();
            (0..calls).for_each(|_| job(data));
            *time = time.min(1e6 * start.elapsed().as_secs_f64() / calls as f64);
        }
    }
    times
}

fn main() {
    println!("back-end {}, microseconds", Backend::current().name());
    println!(
        "degree  forward: ours  tfhe-ntt  ratio   inverse: ours  tfhe-ntt  with normalize  ratio"
    );
    for log in 12..=17 {
        let n = 1usize << log;
        let q = ntt_primes(50, n, 1).expect("a prime")[0];
        let table = NttTable::new(n, q).expect("a table");
        let plan = Plan::try_new(n, q).expect("a plan");
        let mut data = vec![0; n];
        Stream::new(&[1; 32], 0).uniform(table.modulus(), &mut data);
        let jobs: [&dyn Fn(&mut [u64]); 5] = [
            &|x| table.forward(x),
            &|x| plan.fwd(x),
            &|x| table.inverse(x),
            &|x| plan.inv(x),
            &|x| plan.normalize(x),
        ];
        let [forward, peer_forward, inverse, peer_inverse, normalize] =
            best((1 << 17) / n, &mut data, jobs);
        println!(
            "2^{log:<5} {forward:>14.2} {peer_forward:>9.2} {:>6.2} {inverse:>15.2} {peer_inverse:>9.2} {:>15.2} {:>6.2}",
            forward / peer_forward,
            peer_inverse + normalize,
            inverse / (peer_inverse + normalize),
        );
    }
}
