// Live figures: the playground in its compact form, as high as what it shows, in the theme of the page.

// Opened as a file a page may load no modules; the sentence with the link stays.
const can = typeof WebAssembly === "object" && location.protocol.startsWith("http");

function theme() {
  const chosen = document.body.dataset.theme;
  return chosen === "light" || chosen === "dark" ? chosen : null;
}

function follow(frame) {
  const root = frame.contentDocument?.documentElement;
  if (!root?.hasAttribute("data-embed")) return;
  if (theme()) root.dataset.theme = theme(); else delete root.dataset.theme;
  root.style.setProperty("--page", getComputedStyle(document.body).backgroundColor);
  frame.contentDocument.dispatchEvent(new Event("themechange"));
}

function place(box) {
  const { page, fragment } = box.dataset;
  const frame = document.createElement("iframe");
  frame.title = "Live figure: packets on their paths";
  frame.onload = () => {
    const body = frame.contentDocument?.body;
    if (!body || !frame.src) return;
    new ResizeObserver(() => { frame.style.height = `${Math.ceil(body.getBoundingClientRect().height)}px`; }).observe(body);
    follow(frame);
  };
  // It plays as soon as it is there: not before the reader sees it.
  const seen = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    seen.disconnect();
    frame.src = `${page}?embed#${fragment}`;
  }, { threshold: 0.5 });
  seen.observe(frame);
  const link = Object.assign(document.createElement("a"), { href: `${page}#${fragment}`, textContent: "Open in the playground" });
  // With the reader's changes.
  link.onclick = () => { link.href = page + (frame.contentWindow.location.hash || `#${fragment}`); };
  const below = document.createElement("p");
  below.append(link);
  box.replaceChildren(frame, below);
  new MutationObserver(() => follow(frame)).observe(document.body, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => follow(frame));
}

addEventListener("DOMContentLoaded", () => {
  if (can) document.querySelectorAll(".live[data-page]").forEach(place);
  document.documentElement.dataset.ready = "yes";
});
