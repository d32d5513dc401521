//! Reading and writing raw frames, for targets that stand in for a peer.

use anemone_proto::{Connection, Header, MaskKey, Opcode};

/// The key of every frame that is made here.
pub(crate) const KEY: MaskKey = MaskKey([0x37, 0xfa, 0x21, 0x3d]);

/// A frame from a client, masked the plain way.
pub(crate) fn masked(fin: bool, rsv1: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Header::new(opcode, payload.len() as u64);
    Header { fin, rsv1, mask: Some(KEY), ..header }.encode(&mut bytes);
    let begin = bytes.len();
    bytes.extend_from_slice(payload);
    crate::oracle::mask(KEY.0, &mut bytes[begin..]);
    bytes
}

/// All that is queued, as written.
pub(crate) fn transmit(connection: &mut Connection) -> Vec<u8> {
    let bytes = connection.sender().transmit().to_vec();
    assert_eq!(connection.sender().queued_bytes(), bytes.len());
    connection.sender().transmitted(bytes.len());
    assert_eq!(connection.sender().queued_bytes(), 0);
    bytes
}
