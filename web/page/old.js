/*
 * Says that a browser is too old for a page. A script of its own, in the language of 2009 and not a module, so that it runs
 * where those of the page do not.
 */
(function () {
  /** @param {object} owner @param {string[]} names */
  function has(owner, names) {
    return names.every(function (name) {
      return name in owner;
    });
  }

  // What the scripts of the pages use and cannot do without.
  var isNew =
    has(Array.prototype, ["at", "findLast", "toReversed"]) &&
    has(Object, ["hasOwn"]) &&
    has(window, ["structuredClone", "BroadcastChannel", "HTMLDialogElement", "AbortSignal"]) &&
    has(window.AbortSignal, ["timeout", "any"]);
  var main = document.querySelector("main");
  if (isNew || !main || !main.parentNode) return;
  var notice = document.createElement("section");
  notice.id = "notice-too-old";
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = "This browser is too old for this page, which needs Safari 17.4, Chrome 116, Edge 116 or Firefox 124, or a newer one.";
  main.parentNode.insertBefore(notice, main);
  var late = document.getElementById("notice-no-script");
  if (late) late.hidden = true; // it would give another reason
})();
