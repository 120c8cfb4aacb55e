import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardQueues,
  IServerAdapter,
  UIConfig,
} from '@bull-board/api/dist/types.js';

/**
 * Collects what the board wants to be served. It replaces the adapter for Koa, which serves writing operations, parses
 * bodies, and brings more than forty packages for its one page.
 */
export class BoardServer implements IServerAdapter {
  queues: BullBoardQueues = new Map();
  uiConfig: UIConfig = {};
  staticPath = '';
  viewsPath = '';
  entry: AppViewRoute | null = null;
  apiRoutes: readonly AppControllerRoute[] = [];

  setQueues(queues: BullBoardQueues): this {
    this.queues = queues;
    return this;
  }

  setViewsPath(path: string): this {
    this.viewsPath = path;
    return this;
  }

  setStaticPath(_route: string, path: string): this {
    this.staticPath = path;
    return this;
  }

  setEntryRoute(route: AppViewRoute): this {
    this.entry = route;
    return this;
  }

  /** Errors are rendered like all others. */
  setErrorHandler(): this {
    return this;
  }

  setApiRoutes(routes: AppControllerRoute[]): this {
    this.apiRoutes = routes;
    return this;
  }

  setUIConfig(config: UIConfig): this {
    this.uiConfig = config;
    return this;
  }
}
