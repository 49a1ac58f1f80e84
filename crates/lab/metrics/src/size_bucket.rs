//! Jobs by number of GPUs, in the buckets the tables use.

/// A range of gang sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeBucket {
    /// No GPU.
    None,
    /// One GPU.
    One,
    /// 2 to 4.
    UpTo4,
    /// 5 to 8.
    UpTo8,
    /// 9 to 16.
    UpTo16,
    /// 17 to 32.
    UpTo32,
    /// 33 and more.
    Over32,
}

impl SizeBucket {
    /// Every bucket, ascending.
    pub const ALL: [SizeBucket; 7] = [
        SizeBucket::None,
        SizeBucket::One,
        SizeBucket::UpTo4,
        SizeBucket::UpTo8,
        SizeBucket::UpTo16,
        SizeBucket::UpTo32,
        SizeBucket::Over32,
    ];

    /// The bucket of a gang of `gpus`.
    pub fn of(gpus: u32) -> SizeBucket {
        match gpus {
            0 => SizeBucket::None,
            1 => SizeBucket::One,
            2..=4 => SizeBucket::UpTo4,
            5..=8 => SizeBucket::UpTo8,
            9..=16 => SizeBucket::UpTo16,
            17..=32 => SizeBucket::UpTo32,
            33.. => SizeBucket::Over32,
        }
    }

    /// The label used in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            SizeBucket::None => "0",
            SizeBucket::One => "1",
            SizeBucket::UpTo4 => "2-4",
            SizeBucket::UpTo8 => "5-8",
            SizeBucket::UpTo16 => "9-16",
            SizeBucket::UpTo32 => "17-32",
            SizeBucket::Over32 => ">32",
        }
    }
}
