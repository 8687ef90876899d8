// What a person unfolds on one incident is unfolded on the next: the names go with the request, so that the page comes
// as it stays and nothing moves.
const NAMES = "folds";
const kept = () => new Set((document.cookie.match(/(?:^|; )folds=([^;]*)/)?.[1] ?? "").split(".").filter(Boolean));

document.addEventListener("toggle", ({ target }) => {
  if (!target.matches?.("details[data-fold]")) return;
  const names = kept();
  names[target.open ? "add" : "delete"](target.dataset.fold);
  document.cookie = `${NAMES}=${[...names].slice(-40).join(".")}; path=/incidents; max-age=31536000; samesite=lax`;
}, true);
