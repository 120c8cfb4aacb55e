import { Component, type ComponentChildren } from 'preact';
import { useCommon } from '../lib/language.tsx';
import { Button } from '../ui/button.tsx';

interface Props {
  /** Another page gets another chance. */
  readonly path: string;
  readonly children: ComponentChildren;
}

/** Shows that a page failed, in the place of the page. The frame goes on working. */
export class ErrorBoundary extends Component<Props, { readonly failedPath: string | null }> {
  override state = { failedPath: null as string | null };

  override componentDidCatch(error: unknown): void {
    // For whoever looks at the browser's console. A page has no log.
    reportError(error);
    this.setState({ failedPath: this.props.path });
  }

  override render() {
    const { path, children } = this.props;
    return this.state.failedPath === path ? <PageFailed /> : children;
  }
}

export function PageFailed() {
  const common = useCommon();
  return (
    <div class="empty" role="alert">
      <h1 class="empty-title">{common('pageFailed')}</h1>
      <Button icon="refresh" onClick={() => location.reload()}>
        {common('reload')}
      </Button>
    </div>
  );
}
