import type { TestFn } from 'ava';
import { startScriptedVendor, type Script, type ScriptedVendor } from './scripted-vendor.ts';
import { startStack, type TestStack } from './stack.ts';

/** Adds a script for one chat. @returns the messages of the chat, to which the vendor responds with the script */
export type AddScript = (script: Script) => readonly { role: string; content: string }[];

/** One vendor with a script for each chat, and one stack whose catalog uses it, for the tests of a file. */
export function useScriptedStack(
  test: TestFn,
  catalogOf: (vendorUrl: string) => string,
  onStarted: (stack: TestStack) => void,
): AddScript {
  const scripts = new Map<string, Script>();
  let vendor: ScriptedVendor | null = null;
  let stack: TestStack | null = null;
  test.before(async () => {
    vendor = await startScriptedVendor((body, path, call) => {
      const name = /script:(\w+)/.exec(JSON.stringify(body))![1]!;
      return scripts.get(name)!(body, path, call);
    });
    stack = await startStack({ catalog: catalogOf(vendor.url) });
    onStarted(stack);
  });
  test.after.always(async () => {
    await stack?.close();
    await vendor?.close();
  });
  return (script) => {
    const name = `s${scripts.size + 1}`;
    scripts.set(name, script);
    return [{ role: 'user', content: `script:${name}` }];
  };
}
