// State diagrams: Mermaid is 3.5 MB, so it is fetched from this site and only on pages that have a diagram. Without scripts the page shows
// the diagram's source and a table.
(() => {
  const here = document.currentScript.src;
  let library, number = 0;

  const load = () => library ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = new URL("mermaid.min.js", here).href;
    script.onload = () => done(window.mermaid);
    script.onerror = failed;
    document.head.append(script);
  });

  const draw = async () => {
    const sources = [...document.querySelectorAll("pre.ms-diagram")];
    if (!sources.length) return;
    const mermaid = await load();
    const dark = document.body.dataset.mdColorScheme === "slate";
    mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: dark ? "dark" : "neutral", fontFamily: "inherit" });
    for (const source of sources) {
      const text = source.textContent;
      const { svg } = await mermaid.render(`ms-diagram-${number++}`, text);
      let drawn = source.nextElementSibling;
      if (!drawn?.classList.contains("ms-diagram--drawn")) {
        drawn = document.createElement("div");
        drawn.className = "ms-diagram--drawn";
        drawn.tabIndex = 0;
        drawn.setAttribute("role", "img");
        drawn.setAttribute("aria-label", "State diagram; the same follows as a table");
        source.after(drawn);
      }
      drawn.innerHTML = svg;
      source.hidden = true;
    }
  };

  document$.subscribe(draw);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
})();
