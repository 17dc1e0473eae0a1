import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The lab in the browser: a static folder with relative addresses, which any path of any server can hold. Python and
// tanist's modules are put beside it by tools/weblab.py.
export default defineConfig({
  plugins: [svelte()],
  base: "./",
  worker: { format: "es", rollupOptions: { output: { entryFileNames: "assets/worker.js" } } },
  build: {
    outDir: "../build/weblab",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      input: "lab.html",
      output: {
        entryFileNames: "assets/lab.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/lab[extname]",
      },
    },
  },
});
