//! Estimates: what attacks on each parameter set cost, as `tools/security_estimate.py` works it out
//! and writes it here. Public numbers.

/// What the cheapest known attack on a degree and modulus costs, in bits, at uniform ternary secrets and σ = 3.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Estimate {
    /// The ring degree.
    pub degree: usize,
    /// log2 of the modulus that the figures are of: at least the one asked for.
    pub log_modulus: u32,
    /// Core-SVP, 0.292 b at a block size of b.
    pub core_svp: u32,
    /// The model of the guidelines' tables, 0.292 b + 16.4 + log2(8 d) in dimension d: what "128-bit" means here.
    pub guidelines: u32,
    /// Core-SVP with a quantum sieve, 0.265 b.
    pub quantum_core_svp: u32,
}

const fn row(
    degree: usize,
    log_modulus: u32,
    core_svp: u32,
    guidelines: u32,
    quantum_core_svp: u32,
) -> Estimate {
    Estimate { degree, log_modulus, core_svp, guidelines, quantum_core_svp }
}

/// By degree, then modulus: the sets of the lattice scheme, and the edges of both columns of the guidelines' table.
pub(crate) const ESTIMATES: [Estimate; 21] = [
    row(1024, 25, 112, 142, 101),
    row(1024, 26, 106, 136, 96),
    row(2048, 32, 200, 231, 181),
    row(2048, 37, 165, 196, 150),
    row(2048, 50, 109, 140, 99),
    row(2048, 53, 100, 132, 91),
    row(4096, 50, 275, 307, 249),
    row(4096, 64, 200, 232, 181),
    row(4096, 100, 108, 140, 98),
    row(4096, 101, 106, 138, 96),
    row(4096, 106, 99, 131, 90),
    row(8192, 203, 105, 138, 95),
    row(8192, 214, 97, 130, 88),
    row(16384, 409, 103, 138, 94),
    row(16384, 430, 96, 130, 87),
    row(32768, 825, 102, 137, 92),
    row(32768, 868, 94, 130, 86),
    row(65536, 1663, 101, 137, 91),
    row(65536, 1747, 94, 130, 85),
    row(131072, 3348, 99, 137, 90),
    row(131072, 3523, 92, 130, 84),
];
