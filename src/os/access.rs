//! Ways to open a file.

/// Way to open an existing or new file. No way truncates the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Writing, from the beginning.
    Write,
    /// Reading and writing, from the beginning.
    ReadWrite,
    /// Writing at the end.
    Append,
    /// Reading from the beginning, and writing at the end.
    ReadAppend,
}

impl Access {
    /// Whether this way allows reading.
    pub fn reads(self) -> bool {
        matches!(self, Access::ReadWrite | Access::ReadAppend)
    }

    /// Whether everything is written at the end.
    pub fn appends(self) -> bool {
        matches!(self, Access::Append | Access::ReadAppend)
    }
}
