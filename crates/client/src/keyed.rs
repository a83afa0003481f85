//! Keyed tables on a server: records are looked up by key, and the server learns neither the keys nor whether they were there.
//!
//! The table's description is held to a fingerprint: the publisher's, or that of the table which was seen first under the name.
//! A bucket that fails its check ends lookups for every client of this user, as a failure of a private fetch does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciphervec_owner::Keys;
use ciphervec_owner::keyed::{AskedKeys, Description, KeyedClient, LookupKey};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::belief::choices::check_name;
use crate::belief::fetch_book::{Failures, FetchBook};
use crate::belief::vault::{Entry, Vault};
use crate::error::{Error, Result};
use crate::face::Face;
use crate::hex::Hex;
use crate::host::{Host, Progress};
use crate::noting::Noting;
use crate::remote::problem::{Reply, error_of, is_problem, loses_uploads, uploads_gone};
use crate::remote::session::{Call, Session};
use crate::threads::heavy;

/// Bytes of a table that go in one request; a longer one goes in pieces.
const INLINE: usize = 24 << 20;
/// How often what was uploaded and got lost is uploaded again.
const ATTEMPTS: usize = 3;
const OCTETS: &str = "application/octet-stream";

/// A keyed table, as a server lists it.
#[derive(Clone, Debug, Deserialize)]
pub struct TableRow {
    /// Its name.
    pub name: String,
    /// Records in it.
    pub records: u64,
    /// The most bytes that a record has.
    pub record_bytes: u64,
    /// Whether its owner sealed the records.
    pub sealed: bool,
    /// Bytes stored.
    pub bytes: u64,
    /// The server's word: the publisher's counts.
    pub fingerprint: String,
}

/// Where a table is.
pub struct KeyedPlace {
    session: Arc<Session>,
    vault: Arc<Vault>,
    face: Face,
    name: String,
    path: String,
}

impl KeyedPlace {
    /// Of that name on a server.
    pub fn new(
        (session, vault): (Arc<Session>, Arc<Vault>),
        face: Face,
        name: &str,
    ) -> Result<Self> {
        check_name(name)?;
        let path = format!("/v1/tables/{name}");
        Ok(KeyedPlace { session, vault, face, name: name.to_owned(), path })
    }

    fn doing(&self, what: &str) -> String {
        format!("cannot {what} the table {}", self.face.quoted(&self.name))
    }

    fn found(&self, reply: &Reply, doing: &str) -> Result<()> {
        match reply.head.status {
            404 => Err(Error::TableNotFound(format!(
                "{doing}: {} has no such table, or not for this token. {} stores one.",
                self.session.url,
                self.face.named("put_table")
            ))),
            _ => Ok(()),
        }
    }

    /// What names it to this user's storage.
    fn named(&self) -> String {
        format!("keyed table\n{}\n{}", self.session.url, self.name)
    }

    /// Stores a table's file.
    pub async fn put(&self, host: &dyn Host, file: &[u8]) -> Result<TableRow> {
        let doing = self.doing("store");
        let put = async |path: &str, body: &[u8], also: &[u16]| {
            let headers = vec![("Content-Type", OCTETS.to_owned())];
            let call = Call { body: Some(body), headers, also, ..Call::default() };
            self.session.call(host, "PUT", path, &doing, call).await
        };
        if file.len() <= INLINE {
            let reply = put(&self.path, file, &[]).await?;
            return self.session.json(&reply, &doing);
        }
        for _ in 0..ATTEMPTS {
            let uploads = format!("{}/uploads", self.path);
            let total = Some(file.len() as u64);
            let step = |done| host.progress(Progress { phase: "upload", done, total, ms: None });
            let upload = self.session.upload(host, &uploads, file, &doing, step).await?;
            let path = format!("{}?upload={upload}", self.path);
            let reply = put(&path, &[], &[404, 409]).await?;
            if !uploads_gone(&reply) {
                return self.session.json(&reply, &doing);
            }
        }
        Err(loses_uploads(&doing, &self.session.url))
    }

    /// Removes the table.
    pub async fn delete(&self, host: &dyn Host) -> Result<()> {
        let doing = self.doing("remove");
        let call = Call { also: &[204, 404], not_200: true, ..Call::default() };
        let reply = self.session.call(host, "DELETE", &self.path, &doing, call).await?;
        // The answer to an attempt that succeeded may have got lost.
        if reply.failed > 0 { Ok(()) } else { self.found(&reply, &doing) }
    }

    /// The description that the server has, held to a fingerprint.
    async fn description(
        &self,
        host: &dyn Host,
        fingerprint: Option<[u8; 32]>,
    ) -> Result<Description> {
        let doing = self.doing("open");
        let call = Call { also: &[404], limit: Description::MAX_BYTES, ..Call::default() };
        let reply = self.session.call(host, "GET", &self.path, &doing, call).await?;
        self.found(&reply, &doing)?;
        let description = Description::from_bytes(&reply.body)?;
        let came = description.fingerprint();
        let entry = format!("keyed-table/{}", blake3::hash(self.named().as_bytes()).to_hex());
        let seen = match self.vault.get(host, &entry).await? {
            None => None,
            Some(Entry::Data(seen)) => Some(<[u8; 32]>::try_from(&*seen).unwrap_or_default()),
            // What somebody else's keys have seen counts, and can't be read.
            Some(Entry::OtherKeys(_)) => Some([0; 32]),
        };
        let expected = fingerprint.or(seen);
        if expected.is_some_and(|expected| expected != came) {
            let whose =
                if fingerprint.is_some() { "its publisher's" } else { "the one seen before" };
            return Err(Error::Mismatch(format!(
                "{doing}: {} shows a table with the fingerprint {}, which is not {whose}. If the publisher replaced it, pass the new \
                 fingerprint, from the publisher and not from the server.",
                self.session.url,
                Hex(came)
            )));
        }
        if seen != Some(came) {
            self.vault.put(host, &entry, &came).await?;
        }
        Ok(description)
    }
}

/// Every keyed table that the token may see.
pub async fn list_tables(host: &dyn Host, session: &Session) -> Result<Vec<TableRow>> {
    #[derive(Deserialize)]
    struct Listing {
        tables: Vec<TableRow>,
    }
    let doing = "cannot list the tables";
    let reply = session.call(host, "GET", "/v1/tables", doing, Call::default()).await?;
    let listing: Listing = session.json(&reply, doing)?;
    Ok(listing.tables)
}

/// A fingerprint as its publisher gives it out.
fn parsed(text: &str) -> Result<[u8; 32]> {
    let found = Hex::parse(&text.trim().to_ascii_lowercase());
    found.map(|Hex(bytes)| bytes).ok_or_else(|| {
        Error::Input(format!("a table's fingerprint has 64 hexadecimal digits, got {text:?}."))
    })
}

/// A keyed table on a server, to look records up in.
pub struct KeyedTable {
    place: KeyedPlace,
    book: FetchBook,
    /// Those that sealed the table, if it is sealed.
    keys: Option<Arc<Keys>>,
    id: [u8; 16],
    /// With the process that began its session.
    client: Mutex<(KeyedClient, u64)>,
}

impl KeyedTable {
    /// Opens the table of a place.
    pub(crate) async fn open(
        host: &dyn Host,
        place: KeyedPlace,
        keys: Option<Arc<Keys>>,
        fingerprint: Option<&str>,
    ) -> Result<Self> {
        let fingerprint = fingerprint.map(parsed).transpose()?;
        let description = place.description(host, fingerprint).await?;
        let id = *description.name();
        let client = heavy(|| KeyedClient::new(description, keys.as_deref()))?;
        let book = FetchBook::of(Arc::clone(&place.vault), place.named().as_bytes());
        Ok(KeyedTable { place, book, keys, id, client: Mutex::new((client, host.process())) })
    }

    fn client(&self) -> MutexGuard<'_, (KeyedClient, u64)> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.place.name
    }

    /// What is public of it.
    pub fn description(&self) -> Description {
        self.client().0.description().clone()
    }

    /// What became of lookups: how many failed a check, each of which may have told a server whether one key was among those
    /// that were asked for, and whether any is made still.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub async fn failures(&self, host: &dyn Host) -> Result<Failures> {
        self.book.reload(host).await?;
        Ok(self.book.failures())
    }

    /// Goes on after a failure. What was counted stays.
    ///
    /// # Errors
    /// [`Error::Storage`], [`Error::Mismatch`] for another table than before.
    pub async fn resume(&self, host: &dyn Host) -> Result<()> {
        let fingerprint = self.client().0.description().fingerprint();
        let description = self.place.description(host, Some(fingerprint)).await?;
        let client = heavy(|| KeyedClient::new(description, self.keys.as_deref()))?;
        self.book.resume(host).await?;
        *self.client() = (client, host.process());
        Ok(())
    }

    /// The records of keys, in order; none where there is none. The server sees how many keys there are at most: 1, 10, 100 or
    /// whole hundreds, the next from `bound` on, which is the number of keys unless given.
    ///
    /// # Errors
    /// [`Error::FetchEnded`] for an answer that is wrong, now or before; [`Error::Conflict`] if the table was replaced;
    /// [`Error::Scheme`] for too many keys, or a bound of 0; [`Error::Server`], [`Error::Authentication`].
    pub async fn get(
        &self,
        host: &dyn Host,
        keys: &[LookupKey<'_>],
        bound: Option<usize>,
    ) -> Result<Vec<Option<Zeroizing<Vec<u8>>>>> {
        let noting = Noting::of(host, "lookup", self.name());
        if self.failures(host).await?.ended {
            return Err(self.ended());
        }
        let bound = bound.unwrap_or(keys.len().max(1));
        let process = host.process();
        let ((asked, queries), longest) = heavy(|| {
            let (client, began) = &mut *self.client();
            client.renew_for(keys.len(), bound)?;
            // A fork's queries are not counted by its parent.
            if core::mem::replace(began, process) != process {
                client.renew()?;
            }
            Ok::<_, ciphervec_owner::Error>((client.ask(keys, bound)?, client.longest_answer()))
        })
        .map_err(|error| self.of(error))?;
        let mut answers = Vec::with_capacity(queries.len());
        for query in &queries {
            answers.push(self.answer(host, &asked, query, longest).await?);
        }
        // Others may have failed while these were on their way.
        if self.failures(host).await?.ended {
            return Err(self.ended());
        }
        match heavy(|| self.client().0.open(&asked, &answers)) {
            Err(ciphervec_owner::Error::FetchEnded) => {
                if let Err(error) = self.book.end(host).await {
                    host.warn(&format!("that lookups end could not be written down: {error}"));
                }
                Err(self.ended())
            }
            opened => {
                let found = opened?;
                noting.done(keys.len());
                Ok(found)
            }
        }
    }

    fn of(&self, error: ciphervec_owner::Error) -> Error {
        match error {
            ciphervec_owner::Error::FetchEnded => self.ended(),
            error => error.into(),
        }
    }

    fn ended(&self) -> Error {
        Error::FetchEnded(format!(
            "a bucket of {} is not what its publisher wrote: the server answers wrongly, or what it stores is damaged. Nothing was \
             returned, and none is tried again, as that would show which it is. Nothing more is looked up until {}() is called.",
            self.place.face.quoted(&self.place.name),
            self.place.face.named("resume")
        ))
    }

    async fn answer(
        &self,
        host: &dyn Host,
        asked: &AskedKeys,
        query: &[u8],
        longest: usize,
    ) -> Result<Vec<u8>> {
        let (session, doing) = (&self.place.session, self.place.doing("look up in"));
        let octets = || vec![("Content-Type", OCTETS.to_owned())];
        let path = format!("{}/lookup/{}", self.place.path, Hex(self.id));
        let send = async || {
            let (body, also) = (Some(query), &[404, 409, 410][..]);
            let call = Call { body, headers: octets(), also, limit: longest, ..Call::default() };
            session.call(host, "POST", &path, &doing, call).await
        };
        let mut reply = send().await?;
        if reply.head.status == 409 && is_problem(&reply, "fetch-keys-missing") {
            let keys = asked.evaluation_keys();
            let (body, also) = (Some(&keys[..]), &[204][..]);
            let call = Call { body, headers: octets(), also, not_200: true, ..Call::default() };
            let path = format!("{}/keys", self.place.path);
            session.call(host, "PUT", &path, &doing, call).await?;
            reply = send().await?;
        }
        self.place.found(&reply, &doing)?;
        match reply.head.status {
            200 => Ok(reply.body),
            410 => Err(Error::Conflict(format!(
                "{doing}: it was replaced. Open it again, with the new fingerprint of its publisher."
            ))),
            _ => Err(error_of(&reply, &doing, &session.url)),
        }
    }
}
