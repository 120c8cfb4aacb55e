import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/**
 * Makes a component whose script is loaded when it is first shown. If that fails, the error boundary above it shows so.
 * @param load called once, again only after a failure
 * @param loading what is shown until then, as high as what comes
 */
export function lazy<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  loading: () => ComponentChildren,
): (props: Props) => ComponentChildren {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const [failure, setFailure] = useState<unknown>(null);
    const [, setIsLoaded] = useState(loaded !== null);
    useEffect(() => {
      if (loaded !== null) return;
      load().then((component) => {
        loaded = component;
        setIsLoaded(true);
      }, setFailure);
    }, []);
    if (failure !== null) throw failure;
    const View = loaded;
    return View === null ? loading() : <View {...props} />;
  };
}
