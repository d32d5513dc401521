use super::*;

#[test]
fn text_and_bytes_become_a_message_and_come_back_where_they_were() {
    let text = ByteString::from("a text that others share".repeat(10));
    let (at, shared) = (text.as_ptr(), text.clone());
    let message = Incoming::from(text);
    assert_eq!(message.message().as_bytes().as_ptr(), at);
    let clone = message.clone();
    assert_eq!(clone.as_bytes().as_ptr(), at, "a clone");
    assert_eq!(Bytes::from(clone).as_ptr(), at, "as bytes");
    assert_eq!(message.into_text().unwrap().as_ptr(), at, "as text");
    assert_eq!(shared.as_ptr(), at);

    let bytes = Bytes::from(vec![7; 1000]);
    let (at, shared) = (bytes.as_ptr(), bytes.slice(10..));
    let message = Incoming::from(bytes);
    assert_eq!(message.as_bytes().as_ptr(), at);
    let message = message.into_text().unwrap_err();
    assert_eq!(Bytes::from(message).as_ptr(), at);
    assert_eq!(Incoming::from(shared).as_bytes().as_ptr(), at.wrapping_add(10), "a part of it");
}

#[test]
fn owned_text_and_bytes_become_a_message_and_come_back_where_they_were() {
    // With spare capacity, so that making it exact has to copy.
    let mut text = String::with_capacity(1000);
    text.push_str("a text");
    let at = text.as_ptr();
    let message = Incoming::from(text);
    assert_eq!(message.as_bytes().as_ptr(), at);
    let owned = Vec::from(Bytes::from(message));
    assert_eq!(owned.as_ptr(), at);

    let mut bytes = Vec::with_capacity(1000);
    bytes.extend_from_slice(b"bytes");
    let at = bytes.as_ptr();
    let message = Incoming::from(bytes);
    assert_eq!(message.as_bytes().as_ptr(), at);
    let owned = Vec::from(Bytes::from(message));
    assert_eq!(owned.as_ptr(), at);
}

#[test]
fn shared_text_is_sent_as_text_and_shared_bytes_as_binary() {
    let (text, bytes) = (ByteString::from_static("text"), Bytes::from_static(b"bytes"));
    assert_eq!(text.as_message(), Message::Text("text"));
    assert_eq!(bytes.as_message(), Message::Binary(b"bytes"));
    assert_eq!(text.as_message().as_bytes().as_ptr(), text.as_ptr());
    assert_eq!(bytes.as_message().as_bytes().as_ptr(), bytes.as_ptr());
}
