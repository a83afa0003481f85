//! Keyed tables for tests of hostile bytes: a file, and buckets as a client reads them.

use ciphervec_owner::keyed::{
    Description, Digest, KeyedTable, LookupKey, new_records, write_table,
};
use std::io::Cursor;
use std::path::Path;
use std::sync::LazyLock;

/// A table of twenty records that nobody sealed.
pub struct Keyed {
    description: Description,
    digest: Digest,
    pub file: Vec<u8>,
    pub bucket: Vec<u8>,
}

pub static KEYED: LazyLock<Keyed> =
    LazyLock::new(|| Keyed::try_new().expect("a table can be made"));

impl Keyed {
    fn try_new() -> ciphervec_owner::Result<Self> {
        let mut records = new_records(None, Some([4; 32]))?;
        for key in 0..20 {
            records.push(LookupKey::Integer(key), &vec![7; key as usize])?;
        }
        let mut file = Cursor::new(Vec::new());
        let description = write_table(&records, None, 0, Path::new("table"), &mut file)?;
        let file = file.into_inner();
        let start = description.to_bytes().len();
        let bucket = file[start..][..description.geometry().bucket()].to_vec();
        let seed = description.seed().expect("a table that is not sealed has a seed");
        let digest = seed.digest(LookupKey::Integer(3));
        Ok(Keyed { digest, file, bucket, description })
    }

    /// A table's file; what is accepted is what would be written again, and its buckets are checked.
    pub fn read_file(&self, bytes: &[u8]) -> bool {
        KeyedTable::from_bytes(bytes.to_vec()).is_ok_and(|table| {
            let mut again = Vec::with_capacity(bytes.len());
            table.copy_to(Path::new("table"), &mut again).expect("memory takes all");
            assert_eq!(again, bytes);
            let description = table.description().to_bytes();
            assert_eq!(description, bytes[..description.len()]);
            assert!(Description::from_bytes(&description).is_ok());
            let _ = table.verify();
            true
        })
    }

    /// A bucket, whether or not it is right: any outcome but a panic will do. Accepted is the right one alone.
    pub fn read_bucket(&self, bytes: &[u8]) -> bool {
        let (body, _) = self.description.body(&self.digest, bytes);
        let _ = self.description.content(&body);
        let right = self.description.is_bucket(0, 0, bytes);
        assert_eq!(right, bytes == self.bucket);
        right
    }
}
