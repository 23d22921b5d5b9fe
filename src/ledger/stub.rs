use super::*;
use crate::clock::Clock;
use std::path::Path;

/// One process's hold on its ledger. Cheap to clone.
#[derive(Clone)]
pub struct Ledger {}

impl Ledger {
    /// Opens or makes the ledger of a data folder (`ledger.sqlite`), locks it, and brings its schema up to date.
    pub fn open(_folder: &Path, _clock: Clock) -> Result<Ledger, LedgerError> {
        unimplemented!()
    }
    /// The number the next accepted job will have. Only one caller may be between this and its T1.
    pub fn next_job(&self) -> Result<JobId, LedgerError> {
        unimplemented!()
    }
    pub fn has_seen(&self, _asker: Asker, _rumor: RumorId) -> Result<bool, LedgerError> {
        unimplemented!()
    }
    /// T1.
    pub fn answer(&self, _answer: &Answer) -> Result<Recorded, LedgerError> {
        unimplemented!()
    }
    /// T2: `false` when the job was no longer accepted; then nothing was changed.
    pub fn found(&self, _job: JobId, _result: &GiftWrap) -> Result<bool, LedgerError> {
        unimplemented!()
    }
    /// Gives an accepted job up: `false` when it was no longer accepted.
    pub fn expire(&self, _job: JobId, _notice: &GiftWrap) -> Result<bool, LedgerError> {
        unimplemented!()
    }
    /// Letters whose time has come, the longest due first, at most `limit`.
    pub fn due_mail(&self, _limit: usize) -> Result<Vec<DueMail>, LedgerError> {
        unimplemented!()
    }
    /// When the next unsent letter is due, Unix seconds.
    pub fn next_due(&self) -> Result<Option<u64>, LedgerError> {
        unimplemented!()
    }
    /// T3: `relay` has the letter. A found job whose result it is becomes delivered.
    pub fn acknowledge(&self, _mail: MailId, _relay: &str) -> Result<(), LedgerError> {
        unimplemented!()
    }
    /// Counts an attempt and tries again at `due_at`.
    pub fn postpone(&self, _mail: MailId, _due_at: u64) -> Result<(), LedgerError> {
        unimplemented!()
    }
    /// No more attempts: every relay that should have it does, or it is given up. The wrap is kept for `resend` until it expires.
    pub fn finish(&self, _mail: MailId) -> Result<(), LedgerError> {
        unimplemented!()
    }
    /// All accepted jobs, oldest first.
    pub fn open_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        unimplemented!()
    }
    pub fn asker_view(&self, _asker: Asker) -> Result<AskerView, LedgerError> {
        unimplemented!()
    }
    pub fn totals(&self) -> Result<Totals, LedgerError> {
        unimplemented!()
    }
    /// When this bot last was in contact with its relays, by its own clock; `None` at the first start.
    pub fn last_contact(&self) -> Result<Option<u64>, LedgerError> {
        unimplemented!()
    }
    /// Notes that every message up to `at` (at most now) was fetched.
    pub fn set_last_contact(&self, _at: u64) -> Result<(), LedgerError> {
        unimplemented!()
    }
    /// Forgets what nobody will ask for again: wraps past their expiry, seen ids older than a replay can be.
    pub fn clean(&self) -> Result<(), LedgerError> {
        unimplemented!()
    }
}
