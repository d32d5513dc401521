/**
 * Offers data as a file to save.
 * @param {BlobPart} data
 * @param {string} type
 * @param {string} name
 */
export function save(data, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data], { type }));
  link.download = name;
  link.click();
  // The browser has begun to save it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
