//! Compressed frames, each whole in itself.

use std::io::{self, Read};
use zstd::zstd_safe;

/// Speed matters more than size: the engine waits while a frame is made.
const LEVEL: i32 = 1;
/// A frame may unpack to so many bytes. Larger is a snapshot of no cluster.
const MOST_UNPACKED: u64 = 4 << 30;

/// Makes frames.
pub(crate) struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
    frame: Vec<u8>,
}

impl Packer {
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn new() -> io::Result<Packer> {
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(Packer { compressor, frame: Vec::new() })
    }

    /// The frame that holds `lines`.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn pack(&mut self, lines: &[u8]) -> io::Result<&[u8]> {
        self.frame.clear();
        self.frame.reserve(zstd_safe::compress_bound(lines.len()));
        self.compressor.compress_to_buffer(lines, &mut self.frame)?;
        Ok(&self.frame)
    }
}

/// What lies at the front of some bytes.
pub(crate) enum Front {
    /// Nothing.
    End,
    /// The beginning of a frame, and no more.
    Cut,
    /// A frame of so many bytes, which holds these lines.
    Frame(usize, Vec<u8>),
    /// Something else, and why.
    Damaged(String),
}

/// Looks at the front of `bytes`.
pub(crate) fn front(bytes: &[u8]) -> Front {
    if bytes.is_empty() {
        return Front::End;
    }
    let magic = zstd_safe::MAGICNUMBER.to_le_bytes();
    if !bytes.iter().zip(&magic).all(|(a, b)| a == b) {
        return Front::Damaged("no frame begins here".to_owned());
    }
    let size = match zstd_safe::find_frame_compressed_size(bytes) {
        Ok(size) => size,
        // The one error of a frame that lacks its end.
        Err(code) if zstd_safe::get_error_name(code) == "Src size is incorrect" => {
            return Front::Cut;
        }
        Err(code) => return Front::Damaged(zstd_safe::get_error_name(code).to_owned()),
    };
    match unpack(&bytes[..size]) {
        Ok(lines) => Front::Frame(size, lines),
        Err(error) => Front::Damaged(error.to_string()),
    }
}

fn unpack(frame: &[u8]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(frame)?.single_frame();
    let unpacked = decoder.take(MOST_UNPACKED).read_to_end(&mut lines)?;
    if unpacked as u64 == MOST_UNPACKED {
        return Err(io::Error::other("it unpacks to more than 4 GiB"));
    }
    Ok(lines)
}
