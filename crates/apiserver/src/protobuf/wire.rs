//! Protobuf's encoding of fields.

use super::ProtobufError;

/// Reads fields one after the other.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

/// A field's value before anybody says what it means.
#[derive(Clone, Copy)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and value; `None` at the end.
    pub(super) fn field(&mut self) -> Result<Option<(u64, Wire<'a>)>, ProtobufError> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                let bytes = bytes.try_into().map_err(|_| ProtobufError::Truncated)?;
                Wire::Fixed64(u64::from_le_bytes(bytes))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Number)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            // Groups are long gone.
            _ => return Err(ProtobufError::Type("a field of a group")),
        };
        Ok(Some((tag >> 3, wire)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut number: u64 = 0;
        for at in 0..10 {
            let byte = *self.take(1)?.first().ok_or(ProtobufError::Truncated)?;
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ProtobufError::Number)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(ProtobufError::Type("a text or a message")),
        }
    }

    pub(super) fn varint(self) -> Result<u64, ProtobufError> {
        match self {
            Self::Varint(number) => Ok(number),
            _ => Err(ProtobufError::Type("a whole number")),
        }
    }

    pub(super) fn fixed64(self) -> Result<u64, ProtobufError> {
        match self {
            Self::Fixed64(number) => Ok(number),
            _ => Err(ProtobufError::Type("a number")),
        }
    }
}
